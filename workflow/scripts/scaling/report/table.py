"""Make the tables of a page from data frames."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any

import pandas as pd
from markupsafe import Markup

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.tables.schema import rows_of

EMPTY = "–"
LONG_TEXT_CHARS = 24
OfRow = Callable[[Any], Any]
OfFrame = Callable[[pd.DataFrame], Markup | str]


@dataclass(frozen=True)
class Figure:
    """A printed value with its HTML attributes.

    In a table, `detail` is the second line of the value. The values `more` follow in the same cell.
    """

    text: str
    attributes: Markup = field(default_factory=Markup)
    detail: str = ""
    flags: tuple[str, ...] = ()
    link: str = ""
    more: tuple["Figure", ...] = ()

    def __str__(self) -> str:
        return self.text

    def __html__(self) -> Markup:
        return Markup("<span{}>{}</span>").format(self.attributes, self.text)


def fill(pattern: str, *values: object) -> Markup:
    """Return `pattern` as HTML, with `values` in its braces. Strings are escaped."""
    return Markup(pattern).format(*values)


def figure(text: str, row: Any, quantity: str, value: Any) -> Figure:
    """Return `text` as a printed value. A number's attributes name configuration and quantity."""
    if isinstance(value, bool) or not isinstance(value, Real) or not place(row):
        return Figure(text)
    attributes = Markup('{} data-quantity="{}" data-value="{:.5g}"')
    return Figure(text, attributes.format(of_cell(row), quantity, float(value)))


def of_cell(row: Any) -> Markup:
    """Return the HTML attribute that names a row's configuration, such as `tuned/ddp/2/512`."""
    return Markup(' data-cell="{}"').format("/".join(place(row)))


def cell_id(row: Any) -> str:
    """Return an HTML id, `cell-tuned-ddp-2-512`; for time-to-accuracy trainings, `training-…`."""
    kind = "training" if hasattr(row, "target_accuracy") else "cell"
    return "-".join([kind, *place(row)])


def place(row: Any) -> list[str]:
    """Return recipe, strategy, GPUs and batch size of a row as text; [] without a recipe."""
    values = [getattr(row, key) for key in CELL_KEYS] if hasattr(row, "recipe") else []
    return [value if isinstance(value, str) else f"{value:g}" for value in values if value != ""]


@dataclass(frozen=True)
class Column:
    """A column of a table. A cell has the value `name` of its row and, below, the value's interval.

    `write` formats the value and its interval. If given, `text` formats the whole row instead,
    without an interval. `detail` formats further text for the second line. `flags` maps labels,
    formatted with the row, to the conditions on the row for showing them.
    """

    head: str
    write: Callable[[Any], str] = str
    detail: OfRow | None = None
    name: str = ""
    quantity: str = ""
    text: OfRow | None = None
    flags: Mapping[str, OfRow] = field(default_factory=dict)
    link: OfRow = lambda row: ""

    def cell(self, row: Any) -> Figure:
        """Return the printed value of `row`; without a value, the status of `row` or a dash."""
        value, text = getattr(row, self.name), ""
        if value != "" and pd.notna(value):
            text = self.text(row) if self.text else self.write(value)
        if not text:
            state = getattr(row, "status", "ok") or "ok"
            return Figure(EMPTY if state == "ok" else fmt.words(state))
        shown = figure(text, row, self.quantity or self.name, value)
        flags = tuple(label.format(row) for label, holds in self.flags.items() if holds(row))
        lines = ["" if self.text else self._ends(row), self.detail(row) if self.detail else ""]
        detail = ", ".join(filter(None, lines))
        return replace(shown, detail=detail, flags=flags, link=self.link(row))

    def _ends(self, row: Any) -> str:
        """Return the interval of the value, or its range, as text `0.341–0.352`; "" if unknown.

        If both ends round to the same text, return half the width of the interval as a percentage
        of the value: `± 0.03 %`.
        """
        for names in (("low", "high"), ("min", "max")):
            low, high = (getattr(row, f"{self.name}_{end}", None) for end in names)
            if pd.isna(low) or pd.isna(high) or math.isclose(low, high):
                continue
            first, last = self.write(low), self.write(high)
            value = abs(getattr(row, self.name))
            if first == last and value and not last.endswith("%"):
                half = 50 * (high - low) / value
                return f"±\u00a0{fmt.significant(half, 1)}\u00a0%"
            return f"{first.rstrip('× %')}–{last.rstrip('×')}"
        return ""


GAP = Figure(EMPTY)
QUANTITIES: dict[str, Column] = {}
"""Maps each quantity to the `Column` that prints it."""


def named(names: str) -> list[Column]:
    """Return a column for each word of `names`: from `QUANTITIES`, or else one of plain text."""
    return [QUANTITIES.get(one, Column(fmt.words(one), name=one)) for one in names.split()]


def printed(row: Any, quantity: str, write: Callable[[Any], str] | None = None) -> Figure:
    """Return the printed value of a quantity of `row`. `write` replaces its usual format."""
    (column,) = named(quantity)
    return replace(column, write=write or column.write).cell(row)


@dataclass(frozen=True)
class Table:
    """A table with the headings `columns`. The first `keys` cells of a row are headings, too.

    If each cell shows several quantities, one below another, `parts` names them. If each column
    shows one quantity, `parts` is empty.
    """

    name: str
    title: str
    columns: list[str]
    rows: list[list[Figure]]
    keys: int = 1
    note: Markup | str = ""
    parts: Sequence[str] = ()

    @cached_property
    def texts(self) -> set[int]:
        """Indexes of columns in which a text is longer than `LONG_TEXT_CHARS` characters."""
        cells = (pair for row in self.rows for pair in enumerate(row))
        return {index for index, cell in cells if len(cell.text) > LONG_TEXT_CHARS}


@dataclass(frozen=True)
class View:
    """A table on a page. `rows` returns its data frame.

    `keys` and `columns` list names of quantities. `keys` are printed as headings of rows, `columns`
    as cells. If `across` names a column of the frame, each of its values becomes a column of the
    table, with the heading `heading(value)`. They are sorted by the numbers in these values. A cell
    then has all quantities of `columns`, one below another, and rows with equal keys are merged.
    """

    name: str
    title: str
    keys: str
    columns: str
    rows: Callable[..., pd.DataFrame]
    across: str = ""
    heading: Callable[[Any], str] = str
    note: OfFrame = lambda frame: ""

    def make(self, *given: Any) -> Table | None:
        """Return the table of `rows(*given)`, or None if it is empty. Empty rows are left out."""
        frame, keys, columns = self.rows(*given), named(self.keys), named(self.columns)
        texts = frame.select_dtypes(["object", "string"]).astype(object)
        rows = list(rows_of(frame.assign(**texts.where(texts.notna(), ""))))
        cells = [_cells(row, columns) for row in rows]
        shown = [at for at in range(len(columns)) if any(_filled(line[at]) for line in cells)]
        lines = dict[Any, tuple[list[Figure], dict[Any, Figure]]]()
        for row, own in zip(rows, cells, strict=True):
            head, values = [column.cell(row) for column in keys], [own[at] for at in shown]
            key = tuple(cell.text for cell in head) if self.across else len(lines)
            while values and not _filled(values[-1]) and self.across:
                values.pop()
            if any(map(_filled, values)):
                _, line = lines.setdefault(key, (head, {}))
                below = {getattr(row, self.across, ""): replace(values[0], more=tuple(values[1:]))}
                line |= below if self.across else enumerate(values)
        if not lines:
            return None
        every = {place for _, line in lines.values() for place in line}
        places = sorted(every, key=lambda at: ([*map(int, re.findall(r"\d+", str(at)))], str(at)))
        parts = [_with_unit(columns[at].head, frame) for at in shown]
        heads = [*map(self.heading, places)] if self.across else parts
        body = [[*head, *(line.get(at, GAP) for at in places)] for head, line in lines.values()]
        labels = [*(column.head for column in keys), *heads]
        more = len(keys), self.note(frame), parts if self.across else ()
        return Table(self.name, self.title, labels, body, *more)


def _with_unit(head: str, frame: pd.DataFrame) -> str:
    """Return `head` with the unit of a user's command, such as tokens, if the rows have one."""
    units = {*frame["unit"].dropna()} - {""} if "unit" in frame else set()
    unit = units.pop() if len(units) == 1 else "samples"
    return head.replace("samples", unit).replace("a sample", f"a {unit.removesuffix('s')}")


def _cells(row: Any, columns: list[Column]) -> list[Figure]:
    """Return a row's printed cells. If all would show its status, only the first cell does."""
    cells = [column.cell(row) for column in columns]
    alone = {cell.text for cell in cells} == {fmt.words(getattr(row, "status", ""))}
    return [cells[0], *([Figure("")] * (len(cells) - 1))] if alone else cells


def tables(views: Iterable[View], *given: Any) -> list[Table]:
    """Return the tables of `views`, made from the arguments `given`. Empty tables are left out."""
    return [table for view in views if (table := view.make(*given))]


def _filled(cell: Figure) -> bool:
    return cell.text not in (EMPTY, "")


def over_machines(rows: pd.DataFrame, keys: str) -> pd.DataFrame:
    """Return a row per value of the columns `keys`: medians per machine, then over machines.

    Columns `…_min` and `…_max` are extremes of all rows. `correct` is whether all rows are correct.
    `merged` is the number of rows. Texts are of the first row.
    """
    by, rows = keys.split(), rows.assign(merged=1)
    how = dict.fromkeys(rows.columns.difference([*by, "machine"]), "first")
    for name in rows.select_dtypes("number").columns.difference(by):
        how[name] = {"min": "min", "max": "max"}.get(name[-3:], "median")
    how |= {"merged": "sum"} | ({"correct": "all"} if "correct" in rows else {})
    for names in ([*by, "machine"], by):
        rows = rows.groupby(names, sort=False, dropna=False).agg(how).reset_index()
    return rows


def merged(quantities: str) -> OfFrame:
    """Return a function from a table of `over_machines` to its note; "" if nothing was merged."""
    text = f"{quantities} are medians over machines, and over repeats on one; ranges are of all."
    return lambda rows: text * bool(rows["merged"].max() > 1)
