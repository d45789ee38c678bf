"""A registry finds its entries, and those of the user's plug-ins, by their names."""

from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Generic, TypeVar

from scaling.core import plugins
from scaling.core.errors import UserError


@dataclass(frozen=True)
class Reference:
    """An object named `package.module:name`, imported on demand.

    So a cell depends on the code of its own entries alone, and no description needs PyTorch.
    """

    target: str

    @property
    def module(self) -> str:
        return self.target.partition(":")[0]

    def load(self) -> Any:
        return resolve_name(self.target)


Entry = TypeVar("Entry")


class Registry(Generic[Entry]):
    """The project's `own` entries, or references to them; messages call an entry `kind`.

    A plug-in (`core.plugins`) adds its constant `ENTRY`, if that is of the same type.
    """

    def __init__(self, kind: str, entry: type[Entry], *own: Entry | Reference) -> None:
        self.kind, self._own = kind, own
        self._type: Any = entry

    def names(self) -> list[str]:
        return sorted(self._known())

    def find(self, name: str) -> Entry:
        """Return the entry called `name`; UserError lists the names if there is none."""
        return self._found(name)[0]

    def modules(self, name: str) -> list[str | Path]:
        """Return the modules that an entry refers to, after its plug-in's file if it has one."""
        entry, place = self._found(name)
        referred = [value for value in vars(entry).values() if isinstance(value, Reference)]
        return [*place, *(one.module for one in referred)]

    def _found(self, name: str) -> tuple[Entry, list[Path]]:
        if name not in (known := self._known()):
            raise UserError(f"{name!r} is no {self.kind}; choose one of {', '.join(sorted(known))}")
        return known[name]

    def _known(self) -> dict[str, tuple[Entry, list[Path]]]:
        """Return each entry by its name, with the file of the plug-in that it is from."""
        files = {path: getattr(plugins.load(path), "ENTRY", None) for path in plugins.files()}
        found = [(one, [path]) for path, one in files.items() if isinstance(one, self._type)]
        own = [one.load() if isinstance(one, Reference) else one for one in self._own]
        return {one.name: (one, place) for one, place in [*found, *((one, []) for one in own)]}
