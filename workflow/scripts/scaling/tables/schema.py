"""Registry of all tables: columns and types, the records they need, reading and writing."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from scaling.core import files
from scaling.core.errors import UserError
from scaling.core.grid import RUN_KEYS
from scaling.core.records.kind import DATASET
from scaling.tables.columns import COLUMNS

FORMULA = r"^'*[=+\-@\t\r]"
QUOTED = r"^'(?='*[=+\-@\t\r])"


class Table(NamedTuple):
    """A table: its file below `tables`, its records, and the types of its columns."""

    file: str
    records: str
    types: dict[str, str]

    def of_type(self, wanted: str) -> list[str]:
        """Return the columns of this type."""
        return [column for column, own in self.types.items() if own == wanted]

    def path(self, tables: Path, study: str) -> Path:
        """Return the table's path below the folder `tables`; some are in the study's own folder."""
        return tables / f"{self.file.format(study=study)}.csv"


TABLES = {
    Path(file).name: Table(
        file, records, {name: own for name, _, own in (one.partition(":") for one in text.split())}
    )
    for records, tables in COLUMNS.items()
    for file, text in tables.items()
}
"""Every table by its name. When read, a missing text is "", truth False, number NaN."""


def columns(name: str) -> list[str]:
    """Return the columns of the table called `name`, in order."""
    return list(TABLES[name].types)


def frame(name: str, rows: Any = ()) -> pd.DataFrame:
    """Return the table called `name` from rows, or from a table with more columns."""
    return pd.DataFrame(rows, columns=columns(name))


def arrange(name: str, rows: Any) -> pd.DataFrame:
    """Return `frame` sorted by recipe, strategy, gpus, batch_size (seed, repeat, epoch)."""
    table = frame(name, rows)
    order = [key for key in (*RUN_KEYS, "epoch") if key in table]
    return table.sort_values(order, kind="stable", ignore_index=True)


def read(name: str, path: Path) -> pd.DataFrame:
    """Return the table called `name`, read from `path`; UserError if it is no such table."""
    kind = TABLES[name]
    text, truth = kind.of_type("text"), kind.of_type("truth")
    types: Any = dict.fromkeys(text, str)
    try:
        table = pd.read_csv(
            path, usecols=columns(name), dtype=types, keep_default_na=False, na_values=[""]
        )
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is not the table {name} ({error}); make it again") from error
    texts = {own: table[own].fillna("").str.replace(QUOTED, "", regex=True) for own in text}
    return table.assign(**texts, **{own: table[own].eq(True) for own in truth})


def write(name: str, table: pd.DataFrame, path: Path) -> None:
    """Write the table called `name` as CSV, with its columns in order; see `as_csv`."""
    files.write_text(path, as_csv(table[columns(name)]))


def as_csv(table: pd.DataFrame) -> str:
    """Return a table as CSV: floats with all digits, whole numbers as such, nothing for missing.

    A text that a spreadsheet would evaluate gets an apostrophe in front, which `read` removes.
    """
    # Missing values turn integers into floats; nullable types allow them.
    table = table.convert_dtypes()
    texts = table.select_dtypes(["object", "string"])
    safe = texts.apply(lambda column: column.replace(FORMULA, r"'\g<0>", regex=True))
    return table.assign(**safe).to_csv(index=False, lineterminator="\n")


def write_all(found: Mapping[str, pd.DataFrame], tables: Path, study: str = "") -> None:
    """Write tables, keyed by name, below the folder `tables`; see `write`."""
    for name, table in found.items():
        write(name, table, TABLES[name].path(tables, study))


def read_files(paths: Iterable[Path]) -> dict[str, pd.DataFrame]:
    """Return the tables at `paths` by name; see `read`."""
    return {path.stem: read(path.stem, path) for path in paths}


@dataclass(frozen=True)
class StudyTables:
    """The tables of a study by name, each an attribute; empty if the study has no records of it.

    `topology` is the output of `nvidia-smi topo -m`, or ""; `manifest` describes the dataset.
    """

    study: str
    found: Mapping[str, pd.DataFrame]
    topology: str = ""
    manifest: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> pd.DataFrame:
        if name not in TABLES:
            raise AttributeError(f"there is no table {name}")
        types = {"": float, "truth": bool, "text": object}
        none = {column: pd.Series(dtype=types[own]) for column, own in TABLES[name].types.items()}
        return self.found.get(name, pd.DataFrame(none))


def read_study(
    study: str, paths: Iterable[Path], topology: Path | None, manifest: Path
) -> StudyTables:
    """Return the tables of `study` at `paths`; see `read_files`."""
    connected = topology.read_text(encoding="utf-8") if topology else ""
    return StudyTables(study, read_files(paths), connected, DATASET.read(manifest))


def on_cpu(provenance: pd.DataFrame) -> bool:
    """Return whether all runs used a CPU, so that "GPU" means a process."""
    recorded = provenance[provenance["status"] != "missing"]
    return len(recorded) > 0 and bool((recorded["device"] == "cpu").all())


def rows_of(table: pd.DataFrame) -> Iterator[Any]:
    """Return the rows of `table`, with its columns as attributes."""
    return table.itertuples()


def by_configuration(table: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    """Return (recipe, strategy, rows) for each combination, in order of appearance."""
    groups = table.groupby(["recipe", "strategy"], sort=False)
    return [(str(recipe), str(strategy), rows) for (recipe, strategy), rows in groups]
