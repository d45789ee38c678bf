"""A registry finds its entries by their files, so that adding one edits no existing file.

An entry is the constant `ENTRY` of a module in the registry's folder, or of a file of the user's
own (`core/plugins.py`). The code behind an entry is named as text and imported when it is needed: a
cell depends on the code of its own entries alone.
"""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules, resolve_name
from typing import Any, Generic, TypeVar

from scaling.core import plugins
from scaling.core.errors import UserError


@dataclass(frozen=True)
class Reference:
    """An object of a module that is imported only when needed, as `package.module:name`."""

    target: str

    @property
    def module(self) -> str:
        return self.target.partition(":")[0]

    def load(self) -> Any:
        return resolve_name(self.target)


Entry = TypeVar("Entry")


class Registry(Generic[Entry]):
    """The entries of type `entry`, a `kind` as a message calls it; one for each module of `folder`.

    Each has a `name`; its module is called so, with underscores for hyphens.
    """

    def __init__(self, kind: str, folder: str, entry: type[Entry]) -> None:
        self.kind, self._folder = kind, folder
        self._type: Any = entry

    def names(self) -> list[str]:
        return sorted([*(self._load(module).name for module in self._modules()), *self._plugins()])

    def find(self, name: str) -> Entry:
        """The entry called `name`; UserError with the names there are where there is none."""
        module, plugged = name.replace("-", "_"), self._plugins()
        found = self._load(module) if module in self._modules() else None
        if found and found.name == name:
            return found
        if name in plugged:
            return plugged[name][1]
        raise UserError(f"{name!r} is no {self.kind}; choose one of {', '.join(self.names())}")

    def modules(self, name: str) -> list[str | Path]:
        """The modules whose code an entry adds, dotted names or a file: its own, those it names."""
        named = [v.module for v in vars(self.find(name)).values() if isinstance(v, Reference)]
        own = self._plugins().get(name, (f"{self._folder}.{name.replace('-', '_')}",))[0]
        return [own, *named]

    def _plugins(self) -> dict[str, tuple[Path, Any]]:
        """The entries of the user's own files by their names, with the file."""
        found = {path: getattr(plugins.load(path), "ENTRY", None) for path in plugins.files()}
        return {e.name: (path, e) for path, e in found.items() if isinstance(e, self._type)}

    def _modules(self) -> list[str]:
        return [found.name for found in iter_modules(import_module(self._folder).__path__)]

    def _load(self, module: str) -> Any:
        return import_module(f"{self._folder}.{module}").ENTRY
