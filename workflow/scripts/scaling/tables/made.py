"""Which records and tables a study has."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scaling.config import stored
from scaling.tables import schema


class Made:
    """The records of a study (`config`) below `folder`, and the paths of its tables.

    A stored study and a partial one have the records that exist; others all that they ask for.
    """

    def __init__(self, config: dict[str, Any], folder: str, *, is_stored: bool) -> None:
        self._folder, self._study = Path(folder), config["study"]
        self._partial = is_stored or config["partial"]
        asked = stored.records(config)
        lacking = set(asked) - {"limits"} if self._partial else ()
        self.records = {kind: self.there(paths, kind in lacking) for kind, paths in asked.items()}
        """The records of each kind that a study may lack; without any it has none of its tables."""
        self._runs = asked["runs"]

    def runs(self, wildcards: object) -> list[str]:
        """Return the records of the grid's runs, as an input function."""
        return self.there(self._runs)

    def there(self, paths: Iterable[Path], lacking: bool | None = None) -> list[str]:
        """Return the paths of these records, only existing ones if some may be `lacking`."""
        placed = [self._folder / path for path in paths]
        some = self._partial if lacking is None else lacking
        return [str(path) for path in placed if path.exists() or not some]

    def tables(self, names: Iterable[str] = schema.TABLES) -> list[str]:
        """Return the paths of those of these tables that the study has."""
        kinds = [schema.TABLES[name] for name in names]
        there = [kind for kind in kinds if self.records[kind.records]]
        return [str(kind.path(Path("<results>/tables"), self._study)) for kind in there]
