"""Tables as the report's template lays them out: entries, header rows, notes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

from scaling.core import numbers as fmt

Kind = Literal["number", "text", "status", "head"]


@dataclass(frozen=True)
class Entry:
    """One cell of a table: its text, a smaller second line, labels that qualify it, its extent."""

    text: str
    detail: str = ""
    flags: tuple[str, ...] = ()
    kind: Kind = "number"
    columns: int = 1
    rows: int = 1


@dataclass(frozen=True)
class Table:
    """A titled table; `groups` is an optional upper header row: (label, number of columns).

    `text_columns` are the labels of columns that hold words, not numbers.
    """

    title: str
    columns: list[str]
    rows: list[list[Entry]]
    groups: list[tuple[str, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    text_columns: frozenset[str] = frozenset()


def text(words: str, rows: int = 1) -> Entry:
    """An entry of words, for one row or for several."""
    return Entry(words, kind="text", rows=rows)


def head(words: str, rows: int = 1) -> Entry:
    """The heading of a row, or of several."""
    return Entry(words, kind="head", rows=rows)


def status(name: str, columns: int = 1) -> Entry:
    """An entry that stands where a cell has no figures."""
    return Entry(name, kind="status", columns=columns)


def no_single(batch_size: int, columns: int = 1) -> Entry:
    """An entry that stands where a figure needs a single GPU's time that is not there."""
    return status(f"no T(1, {batch_size})", columns)


def flags_of(row: Any, **conditions: bool) -> tuple[str, ...]:
    """The labels whose condition holds (`within_noise` reads "within noise"), and a bad status."""
    labels = [name.replace("_", " ") for name, holds in conditions.items() if holds]
    return (*([] if row.status == "ok" else [row.status]), *labels)


def by_batch_and_gpus(
    title: str,
    rows: pd.DataFrame,
    columns: Sequence[str],
    entries: Callable[[Any], list[Entry]],
    note: str = "message",
) -> Table:
    """The lab's layout: a row for each batch size per GPU, a group of `columns` for each GPU count.

    `entries` makes the group's entries from a table row; `note` is the column whose texts are
    listed below the table.
    """
    counts = sorted(int(count) for count in rows["gpus"].unique())
    cells = {(row.batch_size, row.gpus): row for row in rows.itertuples()}
    lines = []
    for batch in sorted(int(size) for size in rows["batch_size"].unique()):
        line = [head(str(batch))]
        for count in counts:
            found = cells.get((batch, count))
            line += entries(found) if found else [status("not in the grid", len(columns))]
        lines.append(line)
    return Table(
        title=title,
        groups=[("", 1), *((fmt.gpus(count), len(columns)) for count in counts)],
        columns=["batch size per GPU", *(list(columns) * len(counts))],
        rows=lines,
        notes=collect_notes(rows, note),
    )


def collect_notes(rows: pd.DataFrame, column: str) -> list[str]:
    """Each different text of `column`, with the cells (GPUs × batch size) it belongs to.

    Texts joined by "; " count as several.
    """
    places: dict[str, list[str]] = {}
    for row in rows[rows[column] != ""].itertuples():
        place = f"{fmt.gpus(int(row.gpus))} × {int(row.batch_size)}"
        for words in getattr(row, column).split("; "):
            cells = places.setdefault(words, [])
            if place not in cells:
                cells.append(place)
    return [f"{', '.join(cells)}: {words}" for words, cells in places.items()]


def cell_lines(rows: pd.DataFrame, cell: Callable[[Any], list[Entry]]) -> list[list[Entry]]:
    """A line for each cell: batch size, written once for its GPU counts, GPUs, and `cell(row)`."""
    lines = []
    for batch, same in rows.sort_values(["batch_size", "gpus"]).groupby("batch_size"):
        for index, row in enumerate(same.itertuples()):
            line = [head(str(batch), rows=len(same))] if index == 0 else []
            lines.append([*line, Entry(str(int(row.gpus))), *cell(row)])
    return lines
