"""Tables of the report: cells and header rows, and their making from a list of columns."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pandas as pd

from scaling.core import numbers as fmt

Kind = Literal["number", "text", "status", "head"]


@dataclass(frozen=True)
class TableCell:
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
    rows: list[list[TableCell]]
    groups: list[tuple[str, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    text_columns: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SectionPart:
    """What a template shows below one heading, in this order; `missing` is "" or a sentence."""

    sentences: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    missing: str = ""


@dataclass(frozen=True)
class Column:
    """One column: its label, and how a row of the data becomes a cell.

    `value` is a column of the data or a function of its row, `write` makes text of it; `detail`
    and `flags` are functions of the row. Without a value the cell is the status `missing`, which
    may depend on the row, or a dash. Where `instead` gives a cell, that one stands in place of the
    value, once for neighbours that give the same. Rows that follow one another and agree in the
    columns `per` share a cell. `group` is the label in an upper header row.
    """

    label: str
    value: str | Callable[[Any], Any]
    write: Callable[[Any], str] = str
    kind: Kind = "number"
    detail: Callable[[Any], str] | None = None
    flags: Callable[[Any], tuple[str, ...]] | None = None
    missing: str | Callable[[Any], str] = ""
    instead: Callable[[Any], TableCell | None] | None = None
    per: tuple[str, ...] = ()
    group: str = ""

    def cell(self, row: Any) -> TableCell:
        """Make the cell of `row`, leaving `instead` aside."""
        value = getattr(row, self.value) if isinstance(self.value, str) else self.value(row)
        if value is None or value is pd.NA or value != value:
            words = self.missing(row) if callable(self.missing) else self.missing
            return status(words) if words else TableCell("–", kind=self.kind)
        return TableCell(
            self.write(value),
            detail=self.detail(row) if self.detail else "",
            flags=self.flags(row) if self.flags else (),
            kind=self.kind,
        )


def text(words: str, rows: int = 1) -> TableCell:
    """A cell of words, for one row or for several."""
    return TableCell(words, kind="text", rows=rows)


def head(words: str, rows: int = 1) -> TableCell:
    """The heading of a row, or of several."""
    return TableCell(words, kind="head", rows=rows)


def status(name: str, columns: int = 1) -> TableCell:
    """A cell that says why there are no figures."""
    return TableCell(name, kind="status", columns=columns)


def no_single_gpu(row: Any) -> str:
    """The status of a figure that needs a single GPU's time at the batch size of `row`."""
    return f"no T(1, {row.batch_size})"


def flags_of(row: Any, **conditions: bool) -> tuple[str, ...]:
    """The labels whose condition holds (`within_noise` reads "within noise"), and a bad status."""
    labels = [name.replace("_", " ") for name, holds in conditions.items() if holds]
    return (*([] if row.status == "ok" else [row.status]), *labels)


def spread_of(name: str, factor: float = 1.0) -> Callable[[Any], str]:
    """Make a detail of the columns `…_min` and `…_max`: `0.341–0.352`."""

    def detail(row: Any) -> str:
        return fmt.span(*(factor * getattr(row, f"{name}_{end}") for end in ("min", "max")))

    return detail


BATCH_SIZE = Column("batch size per GPU", "batch_size", fmt.integer, "head", per=("batch_size",))
GPUS = Column("GPUs", "gpus", fmt.integer)


def make_table(
    title: str,
    rows: pd.DataFrame,
    columns: Sequence[Column],
    *,
    instead: Callable[[Any], TableCell | None] | None = None,
    keys: int = 1,
    notes: Sequence[str] = (),
) -> Table:
    """A line for each of `rows`.

    Where `instead` gives a cell, it stands in place of all columns but the first `keys`.
    """
    columns = _in_place_of(columns, instead, keys)
    extents = [_extents(rows, column.per) for column in columns]
    return Table(
        title=title,
        columns=[column.label for column in columns],
        rows=[
            _cells(row, columns, [extent[index] for extent in extents])
            for index, row in enumerate(rows.itertuples())
        ],
        groups=_groups(column.group for column in columns),
        notes=list(notes),
        text_columns=_text_columns(columns),
    )


def table_by_cell(
    title: str,
    rows: pd.DataFrame,
    columns: Sequence[Column],
    instead: Callable[[Any], TableCell | None] | None = None,
    notes: Sequence[str] = (),
) -> Table:
    """A line for each batch size per GPU and number of GPUs, the former written once."""
    ordered = rows.sort_values(["batch_size", "gpus"])
    columns = [BATCH_SIZE, GPUS, *columns]
    return make_table(title, ordered, columns, instead=instead, keys=2, notes=notes)


def table_by_gpus(
    title: str,
    rows: pd.DataFrame,
    columns: Sequence[Column],
    *,
    keys: Sequence[Column] = (BATCH_SIZE,),
    instead: Callable[[Any], TableCell | None] | None = None,
    notes: Sequence[str] = (),
) -> Table:
    """The lab's layout: a line for each of the `keys`, a group of `columns` for each GPU count.

    The values of `keys` are columns of the data. Lines are in the order of the first of them,
    and otherwise in that of the data.
    """
    names = [str(key.value) for key in keys]
    counts = sorted(int(count) for count in rows["gpus"].unique())
    found = {(*(getattr(row, name) for name in names), row.gpus): row for row in rows.itertuples()}
    lines = rows[names].drop_duplicates().sort_values(names[0], kind="stable")
    heads = make_table("", lines, keys)
    columns = _in_place_of(columns, instead, 0)
    absent = status("not in the grid", len(columns))
    figures = [
        [
            cell
            for count in counts
            for cell in (
                _cells(found[*line, count], columns) if (*line, count) in found else [absent]
            )
        ]
        for line in lines.itertuples(index=False, name=None)
    ]
    return Table(
        title=title,
        columns=heads.columns + [column.label for column in columns] * len(counts),
        rows=[[*some, *more] for some, more in zip(heads.rows, figures, strict=True)],
        groups=[("", len(names)), *((fmt.gpus(count), len(columns)) for count in counts)],
        notes=list(notes),
        text_columns=heads.text_columns | _text_columns(columns),
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


def _in_place_of(
    columns: Sequence[Column], instead: Callable[[Any], TableCell | None] | None, keys: int
) -> list[Column]:
    """`columns` that ask `instead` before their own, but for the first `keys`."""
    if instead is None:
        return list(columns)

    def first_of(own: Callable[[Any], TableCell | None] | None) -> Any:
        return lambda row: instead(row) or (own(row) if own else None)

    asking = [replace(column, instead=first_of(column.instead)) for column in columns[keys:]]
    return [*columns[:keys], *asking]


def _cells(
    row: Any, columns: Sequence[Column], extents: Sequence[int] | None = None
) -> list[TableCell]:
    """The cells of one line; a column's extent is in rows, 0 where one above reaches so far."""
    cells: list[TableCell] = []
    before = None
    for column, extent in zip(columns, extents or [1] * len(columns), strict=True):
        if not extent:
            continue
        standing = column.instead(row) if column.instead else None
        if standing is not None and standing == before:
            cells[-1] = replace(cells[-1], columns=cells[-1].columns + 1)
        else:
            cells.append(replace(standing or column.cell(row), rows=extent))
        before = standing
    return cells


def _extents(rows: pd.DataFrame, per: tuple[str, ...]) -> list[int]:
    """For each row, over how many its cell reaches: 0 where it belongs to the cell above."""
    if not per:
        return [1] * len(rows)
    keys = rows[list(per)].itertuples(index=False, name=None)
    runs = [len(list(run)) for _, run in itertools.groupby(keys)]
    return [extent for run in runs for extent in (run, *[0] * (run - 1))]


def _groups(labels: Any) -> list[tuple[str, int]]:
    """The upper header row: neighbours of one label together; empty without any label."""
    groups = [(label, len(list(same))) for label, same in itertools.groupby(labels)]
    return groups if any(label for label, _ in groups) else []


def _text_columns(columns: Sequence[Column]) -> frozenset[str]:
    return frozenset(column.label for column in columns if column.kind == "text")
