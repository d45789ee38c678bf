"""Read the arguments of scripts: JSON from a Snakemake rule, options from a command line."""

import argparse
import inspect
import json
import sys
from collections.abc import Callable
from itertools import chain
from typing import Any

from pydantic import TypeAdapter, ValidationError

from scaling.core.errors import UserError, program
from scaling.core.section import key_name, sentence


def script(*functions: Callable[..., None]) -> Callable[..., None]:
    """Return `main` of a script. It calls that one of `functions` which has the given arguments.

    If the file was started as a script, `main` is called at once.
    """

    def main(words: list[str] | None = None, **arguments: Any) -> None:
        given = json.dumps(arguments, default=str) if arguments else text(functions[0], words)
        names = json.loads(given).keys()
        fitting = (one for one in functions if names & inspect.signature(one).parameters.keys())
        call(next(fitting, functions[0]), given)

    main.__module__ = functions[0].__module__
    return program(main)


def text(function: Callable[..., None], words: list[str] | None) -> str:
    """Return the arguments `words` as one JSON object.

    `words` are JSON objects, which are merged, or options such as `--name value`.
    """
    words = sys.argv[1:] if words is None else words
    if words and words[0].startswith("{"):
        found: dict[str, Any] = {}
        for key, value in chain.from_iterable(json.loads(word).items() for word in words):
            found[key] = found.get(key, {}) | value if isinstance(value, dict) else value
        return json.dumps(found)
    about = getattr(sys.modules[function.__module__], "__doc__", None)
    parser = argparse.ArgumentParser(description=about, allow_abbrev=False)
    for name, parameter in inspect.signature(function).parameters.items():
        needed, option = parameter.default is parameter.empty, f"--{name.replace('_', '-')}"
        parser.add_argument(option, default=argparse.SUPPRESS, required=needed)
    return json.dumps(vars(parser.parse_args(words)))


def call(function: Any, given: str) -> Any:
    """Call `function` with the arguments in the JSON text `given`, after a check of their types."""
    try:
        return TypeAdapter(function).validate_json(given)
    except ValidationError as invalid:
        first = invalid.errors()[0]
        place = key_name(first["loc"]) or "the specification"
        raise UserError(f"{place} is {first['input']!r}: {sentence(first)}") from invalid
