"""The tables that the claims of a study are made from, those that it has."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from scaling.core.errors import UserError
from scaling.tables import schema


@dataclass(frozen=True)
class ClaimTables:
    """Tables by name, as `result_tables.read` returns them.

    A table that the study does not have is an empty one with the columns it would have, so that
    whoever finds no rows in it has found no evidence, for whatever reason.
    """

    study: str
    found: dict[str, pd.DataFrame]

    def __getitem__(self, name: str) -> pd.DataFrame:
        if name in self.found:
            return self.found[name]
        return pd.DataFrame(columns=schema.COLUMNS[name])

    def file(self, name: str) -> str:
        """Where the table `name` lies, or would lie, relative to results/."""
        own = f"{self.study}/" if name in schema.OWN else ""
        return f"tables/{own}{name}.csv"

    @property
    def on_cpu(self) -> bool:
        """Whether every recorded run was on a CPU: "GPU" then means a process."""
        return schema.on_cpu(self["provenance"])


def read(study: str, paths: Iterable[Path]) -> ClaimTables:
    """The tables at `paths`, named by their files. Raises UserError for a name that is none."""
    found = {}
    for path in paths:
        if path.stem not in schema.COLUMNS:
            known = ", ".join(schema.COLUMNS)
            raise UserError(f"{path} is no table of a study; those are {known}")
        found[path.stem] = schema.read(path.stem, path)
    return ClaimTables(study, found)
