"""The error message of a script."""

import pytest

from scaling.core.errors import UserError, printable, refused


@pytest.mark.parametrize("steers", ["\x1b]0;title\x07", "\r\x9b2J", "\u202e\u200b\u2028", "\udcff"])
def test_control_characters_are_escaped(capsys, steers):
    with pytest.raises(SystemExit), refused():
        raise UserError(f"ü – 2 × 3\n\t{steers}")
    assert capsys.readouterr().err == f"error: ü – 2 × 3\n\t{ascii(steers)[1:-1]}\n"


def test_spaces_of_any_width_are_kept():
    assert printable("b\u00a0=\u202f3\u3000") == "b\u00a0=\u202f3\u3000"
