"""A dataclass is a command line, and a section of the configuration is written as its options."""

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scaling.core.command_line import options, parse


@dataclass(frozen=True)
class Rates:
    learning_rate: float = 0.1


@dataclass(frozen=True)
class Command:
    """What a test asks for."""

    output: Path
    rates: Rates = Rates()
    flip: bool = True
    gpus: list[int] = field(default_factory=lambda: [1])
    limit: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    remedies: list[dict[str, Any]] = field(default_factory=list)


def test_what_is_written_as_options_is_read_as_it_was():
    of_recipe, remedies = {"compile": True}, [{"name": "it's", "factors": [0.5, 1]}]
    values = {"output": "a folder/x.json", "learning_rate": 5e-4, "flip": False, "gpus": [1, 2]}
    written = options(values | {"limit": None, "options": of_recipe, "remedies": remedies})
    assert "--learning-rate 0.0005 --flip False --gpus 1 2 --options" in written
    wanted = Command(Path("a folder/x.json"), Rates(5e-4), False, [1, 2], None, of_recipe, remedies)
    assert parse(Command, shlex.split(written)) == wanted
    # Lists may be empty, and what is left out has its default.
    command = parse(Command, shlex.split(options({"gpus": [], "output": "x"})))
    assert command == Command(Path("x"), gpus=[])
