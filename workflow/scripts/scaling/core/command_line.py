"""Read the arguments of scripts: JSON from a Snakemake rule, options from a command line."""

import argparse
import inspect
import json
import sys
from collections.abc import Callable
from itertools import chain
from typing import Any, NoReturn

from pydantic import TypeAdapter, ValidationError

from scaling.core.errors import UserError, program
from scaling.core.section import sentence


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}: --help lists the options")


def script(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function `main` that reads the arguments of `function` and calls `function`.

    `main` checks the types of the arguments. If the script is run, not imported, `main` is called.
    """

    def main(words: list[str] | None = None, **arguments: Any) -> None:
        given = arguments or parsed(function, sys.argv[1:] if words is None else words)
        call(function, json.dumps(given, default=str))

    main.__module__ = function.__module__
    return program(main)


def parsed(function: Callable[..., None], words: list[str]) -> dict[str, Any]:
    """Return the arguments of `function` in the command line `words`, by name.

    `words` are JSON objects, which are merged, or options such as `--name value`. Raise UserError
    for unknown, missing and incomplete options.
    """
    if words and words[0].startswith("{"):
        found: dict[str, Any] = {}
        for key, value in chain.from_iterable(json.loads(word).items() for word in words):
            found[key] = found.get(key, {}) | value if isinstance(value, dict) else value
        return found
    about = sys.modules[function.__module__].__doc__
    parser = _Parser(description=about, allow_abbrev=False)
    for name, parameter in inspect.signature(function).parameters.items():
        needed, option = parameter.default is parameter.empty, f"--{name.replace('_', '-')}"
        parser.add_argument(option, default=argparse.SUPPRESS, required=needed)
    return vars(parser.parse_args(words))


def call(function: Any, given: str) -> Any:
    """Call `function` with the arguments in the JSON text `given`; UserError for a wrong type."""
    try:
        return TypeAdapter(function).validate_json(given)
    except ValidationError as invalid:
        raise UserError(sentence(invalid.errors()[0], "the specification")) from invalid
