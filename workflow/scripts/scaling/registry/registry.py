"""A registry finds its entries by their files, so that adding one edits no existing file.

An entry is the constant `ENTRY` of a module in the registry's folder. The code behind an entry is
named as text and imported when it is needed: a cell depends on the code of its own entries alone.
"""

from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules, resolve_name
from typing import Any, Generic, Protocol, TypeVar

from scaling.core.errors import UserError


@dataclass(frozen=True)
class Reference:
    """An object of a module that is imported only when needed, as `package.module:name`."""

    target: str

    @property
    def module(self) -> str:
        """The dotted name of the module."""
        return self.target.partition(":")[0]

    def load(self) -> Any:
        """Import the module and return the object."""
        return resolve_name(self.target)


class Named(Protocol):
    """What every entry has."""

    @property
    def name(self) -> str: ...


Entry = TypeVar("Entry", bound=Named)


class Registry(Generic[Entry]):
    """The entries of one `kind` (as a message calls it), one for each module of `folder`.

    A module is called as its entry, with underscores for hyphens.
    """

    def __init__(self, kind: str, folder: str) -> None:
        self.kind, self._folder = kind, folder

    def names(self) -> list[str]:
        """The names of all entries, sorted."""
        return sorted(self._load(module).name for module in self._modules())

    def find(self, name: str) -> Entry:
        """The entry called `name`; UserError with the names there are where there is none."""
        if name.replace("-", "_") in self._modules():
            entry = self._load(name.replace("-", "_"))
            if entry.name == name:
                return entry
        raise UserError(f"{name!r} is no {self.kind}; choose one of {', '.join(self.names())}")

    def modules(self, name: str) -> list[str]:
        """The dotted names of the modules whose code an entry adds: its own, and those it names."""
        named = [v.module for v in vars(self.find(name)).values() if isinstance(v, Reference)]
        return [f"{self._folder}.{name.replace('-', '_')}", *named]

    def _modules(self) -> list[str]:
        return [found.name for found in iter_modules(import_module(self._folder).__path__)]

    def _load(self, module: str) -> Entry:
        entry: Entry = import_module(f"{self._folder}.{module}").ENTRY
        return entry
