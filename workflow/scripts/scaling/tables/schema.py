"""Registry of all tables: columns and types, the records they need, reading and writing."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.core import files
from scaling.core.errors import UserError
from scaling.core.records.kind import DATASET
from scaling.tables.columns import COLUMNS

FORMULA = r"^'*[=+\-@\t\r]"
QUOTED = r"^'(?='*[=+\-@\t\r])"


@dataclass(frozen=True)
class Table:
    """A table: its file below `tables` without ending, its records, and its columns."""

    file: str
    records: str
    text: str

    @property
    def types(self) -> dict[str, str]:
        """The type of each column, in order: `text`, `truth`, or "" for a number."""
        return {name: kind for name, _, kind in (one.partition(":") for one in self.text.split())}

    def of_type(self, wanted: str) -> list[str]:
        """Return the columns of this type."""
        return [column for column, own in self.types.items() if own == wanted]

    def path(self, tables: Path, study: str) -> Path:
        """Return the table's path below the folder `tables`; some are in the study's own folder."""
        return tables / f"{self.file.format(study=study)}.csv"


TABLES = {
    Path(file).name: Table(file, records, text)
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


def empty(name: str) -> pd.DataFrame:
    """Return the table called `name` without rows, as `read` would return it."""
    types = {"": float, "truth": bool, "text": object}
    return frame(name).astype({name: types[own] for name, own in TABLES[name].types.items()})


_ORDER = ["recipe", "strategy", "gpus", "batch_size", "seed", "repeat", "epoch"]


def arrange(name: str, rows: Any) -> pd.DataFrame:
    """Return `frame` sorted by recipe, strategy, gpus, batch_size (seed, repeat, epoch)."""
    table = frame(name, rows)
    order = [key for key in _ORDER if key in table]
    return table.sort_values(order, kind="stable", ignore_index=True)


def read(name: str, path: Path) -> pd.DataFrame:
    """Read the table called `name` from `path`; UserError if it is missing or no such table."""
    kind = TABLES[name]
    text = kind.of_type("text")
    try:
        table = pd.read_csv(
            path, dtype=dict.fromkeys(text, str), keep_default_na=False, na_values=[""]
        )
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist") from error
    except ValueError as error:
        raise UserError(f"{path} is not a CSV table ({error}); make it again") from error
    absent = [column for column in kind.types if column not in table]
    if absent:
        raise UserError(f"{path} has no column {', '.join(absent)}; make it again or add it")
    truths = {column: table[column].eq(True) for column in kind.of_type("truth")}
    texts = {
        column: table[column].fillna("").str.replace(QUOTED, "", regex=True) for column in text
    }
    return table.assign(**texts, **truths)


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
    """Return the tables at `paths` by name; UserError for an unknown name; see `read`."""
    found = {}
    for path in paths:
        if path.stem not in TABLES:
            raise UserError(f"{path} is no table of a study; those are {', '.join(TABLES)}")
        found[path.stem] = read(path.stem, path)
    return found


@dataclass(frozen=True)
class StudyTables:
    """The tables of a study by name, each an attribute; empty if the study has no records of it.

    `topology` is the output of `nvidia-smi topo -m`, or ""; `manifest` describes the dataset.
    """

    study: str
    found: Mapping[str, pd.DataFrame]
    topology: str
    manifest: dict[str, Any]

    def __getattr__(self, name: str) -> pd.DataFrame:
        if name not in TABLES:
            raise AttributeError(f"there is no table {name}")
        return self.found[name] if name in self.found else empty(name)


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
