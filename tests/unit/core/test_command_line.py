"""A script reads its arguments as JSON or as options, and prints its error in one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from scaling.core.command_line import script
from scaling.core.errors import UserError, refused
from scaling.core.section import Section

CALLS: list[tuple[Any, ...]] = []


class Rates(Section):
    folder: Path
    rate: float = 0.1


@script
def main(rates: Rates | None = None, gpus: tuple[int, ...] = (), force: bool = False) -> None:
    CALLS.append((rates, gpus, force))


def test_arguments_are_json_or_options():
    given = {"rates": {"folder": "a folder/x", "rate": 1}, "gpus": [1, 2]}
    main([json.dumps(given)])
    main(rates={"folder": Path("a folder/x"), "rate": 1}, gpus=[1, 2])
    assert [(Rates(folder=Path("a folder/x"), rate=1.0), (1, 2), False)] * 2 == CALLS
    main(['{"rates": {"rate": 1}}', '{"rates": {"folder": "a folder/x"}, "gpus": [1, 2]}'])
    assert CALLS[2] == CALLS[0]
    main(["--force", "True"])
    assert CALLS[3:] == [(None, (), True)]


def test_wrong_argument_is_one_sentence():
    with pytest.raises(UserError, match=r"rates.rate is '1': it should be a number"):
        main(rates={"folder": "x", "rate": "1"})
    with pytest.raises(UserError, match="other is 3: "):
        main(other=3)
    for words in (["--force"], ["--forse", "True"], ["x"]):
        with pytest.raises(UserError, match=f"{words[0]}.*: --help lists the options"):
            main(words)


@pytest.mark.parametrize("steers", ["\x1b]0;title\x07", "\r\x9b2J", "\u202e\u200b\u2028", "\udcff"])
def test_control_characters_are_escaped_and_spaces_kept(capsys, steers):
    kept = "ü – 2 × 3\n\tb\u00a0=\u202f3\u3000"
    with pytest.raises(SystemExit), refused():
        raise UserError(f"{kept}{steers}")
    assert capsys.readouterr().err == f"error: {kept}{ascii(steers)[1:-1]}\n"
