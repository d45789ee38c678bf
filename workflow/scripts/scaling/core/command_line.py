"""Read the arguments of scripts: JSON from a Snakemake rule, options from a command line."""

import argparse
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from scaling.core import files
from scaling.core.errors import UserError, program
from scaling.core.section import key_name, sentence


def script(function: Callable[..., None]) -> Callable[..., None]:
    """Decorate a script's `main`: it then reads its arguments, and runs if the file is started."""

    def main(words: list[str] | None = None, **arguments: Any) -> None:
        given = json.dumps(arguments, default=str) if arguments else text(function, words)
        call(function, given)

    main.__module__ = function.__module__
    return program(main)


def text(function: Callable[..., None], words: list[str] | None) -> str:
    """Return arguments as JSON. `words` are JSON objects or files, merged, or `--name value`."""
    words = sys.argv[1:] if words is None else words
    if words and all(word.startswith("{") or word.endswith(".json") for word in words):
        found: dict[str, Any] = {}
        for word in words:
            part = word if word.startswith("{") else files.read_text(Path(word))
            for key, value in json.loads(part).items():
                found[key] = found.get(key, {}) | value if isinstance(value, dict) else value
        return json.dumps(found)
    about = getattr(sys.modules[function.__module__], "__doc__", None)
    parser = argparse.ArgumentParser(description=about, allow_abbrev=False)
    for name, parameter in inspect.signature(function).parameters.items():
        needed, option = parameter.default is parameter.empty, f"--{name.replace('_', '-')}"
        parser.add_argument(option, default=argparse.SUPPRESS, required=needed)
    return json.dumps(vars(parser.parse_args(words)))


def call(function: Any, given: str) -> Any:
    """Call `function` with arguments from the JSON `given`; UserError if their types are wrong."""
    try:
        return TypeAdapter(function).validate_json(given)
    except ValidationError as invalid:
        first = invalid.errors()[0]
        place = key_name(first["loc"]) or "the specification"
        raise UserError(f"{place} is {first['input']!r}: {sentence(first)}") from invalid
