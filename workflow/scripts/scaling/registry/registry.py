"""Registries find strategies, engines, datasets and models by name, built in or from plug-ins.

A plug-in is a Python file of the user with a strategy, an engine or a dataset in `ENTRY`.
"""

import importlib.util
import os
import sys
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import Any, Generic, TypeVar

from scaling.core.errors import UserError

VARIABLE = "SCALING_PLUGINS"
"""Environment variable with the paths of all plug-in files, separated as in PATH."""


@cache
def loaded(path: Path) -> ModuleType:
    """Return the module in the file `path`. It may import other modules from the same folder.
    Raise UserError if the file is missing or its import fails.
    """
    if not path.is_file():
        raise UserError(f"{path} does not exist from {Path.cwd()}: give the path of a Python file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.append(str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    return module


def plugin_entries() -> dict[Path, Any]:
    """Return each plug-in's `ENTRY` by path of the file; None if a file has no `ENTRY`."""
    paths = [Path(name) for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
    return {path: getattr(loaded(path), "ENTRY", None) for path in paths}


def resolved(target: str) -> Any:
    """Return the object named `target` (`file.py:name` or `module:name`), or raise UserError."""
    place, _, name = target.partition(":")
    try:
        return getattr(loaded(Path(place)), name) if place.endswith(".py") else resolve_name(target)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"there is no {target}: {error}") from error


class Reference(str):
    """The name `package.module:name` of an object. Only `load` imports the object.

    Therefore a run's digest covers only the entries that the run uses, and entries can be listed
    without PyTorch.
    """

    __slots__ = ()

    @property
    def module(self) -> str:
        return self.partition(":")[0]

    def load(self) -> Any:
        return resolve_name(self)


Entry = TypeVar("Entry")


class Registry(Generic[Entry]):
    """Finds objects of type `entry`, such as strategies, by their `name`.

    The objects are built in or the `ENTRY` of plug-ins. An `ENTRY` of another type is ignored.
    A built-in `Reference` is loaded on demand. `kind` is a noun for the objects in error messages.
    """

    def __init__(self, kind: str, entry: type[Entry], *built_in: Entry | Reference) -> None:
        self.kind, self._built_in = kind, built_in
        self._type: Any = entry

    def names(self) -> list[str]:
        return sorted(self._known())

    def find(self, name: str) -> Entry:
        """Return the entry called `name`; if there is none, raise UserError with all names."""
        if name not in (known := self._known()):
            raise UserError(f"{name!r} is no {self.kind}; choose one of {', '.join(sorted(known))}")
        return known[name]

    def modules(self, name: str) -> list[str | Path]:
        """Return the modules that the object `name` refers to. A plug-in's own file comes first."""
        entry = self.find(name)
        place = [path for path, added in plugin_entries().items() if added is entry]
        referred = [value for value in vars(entry).values() if isinstance(value, Reference)]
        return [*place, *(one.module for one in referred)]

    def _known(self) -> dict[str, Any]:
        """Return all entries by name. A built-in entry takes precedence over a plug-in's."""
        built_in = [one.load() if isinstance(one, Reference) else one for one in self._built_in]
        there = [*plugin_entries().values(), *built_in]
        return {one.name: one for one in there if isinstance(one, self._type)}
