"""The command line of a script: the fields of a dataclass as options, by tyro."""

import json
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args, get_origin

from scaling.core.errors import program

T = TypeVar("T")


def script(function: Callable[..., None]) -> Callable[..., None]:
    """Decorate main(argv): its parameters become command-line options; see `program`."""

    def main(argv: list[str] | None = None) -> None:
        parse(function, argv)

    main.__module__ = function.__module__
    return program(main)


def parse(
    command: Callable[..., T], argv: list[str] | None = None, description: str | None = None
) -> T:
    """Call `command`, a dataclass or function, with the options in `argv` (default: sys.argv).

    Fields of nested dataclasses are options too. Lists take any number of values, booleans True or
    False, dictionaries and lists of them JSON. `description` (default: the module's docstring) and
    the fields' docstrings are the `--help`. A wrong option ends the process with status 2.
    """
    import tyro
    from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec

    registry = ConstructorRegistry()

    @registry.primitive_rule
    def _(field: Any) -> PrimitiveConstructorSpec[Any] | None:
        if dict not in (get_origin(field.type), *map(get_origin, get_args(field.type))):
            return None
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar="JSON",
            instance_from_str=lambda texts: json.loads(texts[0]),
            is_instance=lambda value: isinstance(value, dict | list),
            str_from_instance=lambda value: [json.dumps(value)],
        )

    with registry:
        return tyro.cli(
            command,
            args=argv,
            description=description or sys.modules[command.__module__].__doc__,
            config=(tyro.conf.OmitArgPrefixes, tyro.conf.FlagConversionOff),
        )


def options(values: Mapping[str, Any], *keys: str) -> str:
    """Format `values`, or those of `keys`, as shell options for `parse`; None is left out."""
    found = []
    for key in keys or values:
        value = values[key]
        if isinstance(value, dict) or (isinstance(value, list) and dict in map(type, value)):
            value = json.dumps(value, sort_keys=True)
        texts = map(str, value if isinstance(value, list) else [value])
        if value is not None:
            found.append(shlex.join([f"--{key.replace('_', '-')}", *texts]))
    return " ".join(found)
