"""Tables of the report, built from a study's tables as report/tables.yaml describes."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
import yaml
from jinja2 import meta

from scaling.core import numbers as fmt

SPECS = Path(__file__).parents[4] / "report/tables.yaml"
EMPTY = "–"
LONG_TEXT_CHARS = 24
"""Number of characters above which a cell counts as text."""


@dataclass(frozen=True)
class TableCell:
    """A cell: its text, a smaller second line, qualifying labels, and a link."""

    text: str
    detail: str = ""
    flags: tuple[str, ...] = ()
    link: str = ""


@dataclass(frozen=True)
class Table:
    """A titled table; `name` is its anchor, `keys` counts the columns that head a row.

    A column has a label and its group's label, "" for none.
    """

    name: str
    title: str
    columns: list[tuple[str, str]]
    rows: list[list[TableCell]]
    keys: int = 1
    notes: list[str] = field(default_factory=list)

    @cached_property
    def texts(self) -> set[int]:
        """The indexes of columns that contain words."""
        return {
            index
            for row in self.rows
            for index, cell in enumerate(row)
            if len(cell.text) > LONG_TEXT_CHARS
        }

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The upper header row: (label, number of columns); empty without a group."""
        groups = [(group, len(list(same))) for group, same in groupby(self.columns, itemgetter(1))]
        return groups if any(label for label, _ in groups) else []


@dataclass(frozen=True)
class ColumnSpec:
    """How a row becomes a cell: Jinja expressions over the row's columns.

    `value` is the text, `detail` the second line, `link` the column of an address; a flag is shown
    if its expression is true.
    """

    value: str
    detail: str = ""
    flags: Mapping[str, str] = field(default_factory=dict)
    link: str = ""

    def cell(self, row: Mapping[str, Any]) -> TableCell:
        """Return the cell of `row`: without a value, its status or a dash."""
        value = evaluate(self.value, row)
        if value in (None, ""):
            state = row.get("status", "ok")
            return TableCell(EMPTY if state in ("ok", None) else fmt.words(state))
        detail = evaluate(self.detail, row) if self.detail else None
        flags = tuple(label for label, holds in self.flags.items() if evaluate(holds, row))
        return TableCell(str(value), str(detail or ""), flags, row.get(self.link, ""))


@dataclass(frozen=True)
class TableSpec:
    """A table of the report.

    `rows` names a table of the study or a frame of `scaling.report.frames`; `where` (a pandas
    query) filters it. `keys` head a row. With `across`, a column of the data, each of its values
    has a group of `columns`, headed by the expression `heading`, and rows with equal `keys` are
    merged. `note` is an expression whose texts are shown below the table, with their cells.
    """

    name: str
    title: str
    rows: str
    keys: dict[str, Any]
    columns: dict[str, Any]
    where: str = ""
    across: str = ""
    heading: str = ""
    note: str = ""

    def make(self, frame: pd.DataFrame) -> Table | None:
        """Return the table of `frame`; None if it has no rows to show."""
        frame = frame.query(self.where) if self.where and len(frame) else frame
        if frame.empty:
            return None
        rows = list(_plain(frame))
        keys, columns = _columns(self.keys), _columns(self.columns)
        labels = [(head, "") for head in self.keys]
        if self.across:
            values = _distinct(row[self.across] for row in rows)
            lines: dict[tuple[str, ...], list[list[TableCell]]] = {}
            for row in rows:
                head = [spec.cell(row) for spec in keys]
                groups = lines.setdefault(
                    tuple(cell.text for cell in head),
                    [head, *([[TableCell(EMPTY)] * len(columns)] * len(values))],
                )
                groups[1 + values.index(row[self.across])] = _cells(columns, row)
            body = [list(chain(*groups)) for groups in lines.values()]
            for value in values:
                heading = str(evaluate(self.heading or self.across, {self.across: value}))
                labels += [(column or heading, heading * bool(column)) for column in self.columns]
        else:
            body = [[*(spec.cell(row) for spec in keys), *_cells(columns, row)] for row in rows]
            labels += [(column, "") for column in self.columns]
        shown = [
            index
            for index in range(len(labels))
            if index < len(keys) or any(line[index].text not in (EMPTY, "") for line in body)
        ]
        return Table(
            self.name,
            self.title,
            [labels[index] for index in shown],
            [[line[index] for index in shown] for line in body],
            len(keys),
            _notes(rows, self.note) if self.note else [],
        )


@cache
def specs(source: Path = SPECS) -> dict[str, list[TableSpec]]:
    """Return the tables of each part of a page, in order, as `source` describes them."""
    document = yaml.safe_load(source.read_text(encoding="utf-8"))
    return {
        part: [TableSpec(name, **spec) for name, spec in tables.items()]
        for part, tables in document.items()
    }


def tables(part: str, frame: Callable[[str], pd.DataFrame], source: Path = SPECS) -> list[Table]:
    """Return the non-empty tables of a part; `frame` returns a table of the study by name."""
    made = (spec.make(frame(spec.rows)) for spec in specs(source)[part])
    return [table for table in made if table is not None]


def evaluate(expression: str, row: Mapping[str, Any]) -> Any:
    """Return the value of an expression over a row; None if it uses an empty column.

    Raises jinja2.UndefinedError for an unknown column.
    """

    def span(name: str, factor: float = 1, write: str = "significant") -> str:
        """Return `0.341–0.352`, from the columns `…_min` and `…_max`; "" if they are equal.

        For times of several runs the range of their medians follows: `; 2 runs: 0.343–0.351`.
        """
        low, high = row[f"{name}_min"], row[f"{name}_max"]
        if low is None or high is None or low == high:
            return ""
        said = "–".join(_ENVIRONMENT.filters[write](factor * end) for end in (low, high))
        if f"{name}_run_min" in row and (row["runs"] or 0) > 1:
            return f"{said}; {row['runs']:.0f} runs: {span(f'{name}_run', factor, write)}"
        return said

    def interval(low: str, high: str, factor: float = 1) -> str:
        """Return `−1.2 to 0.3`, from two columns; "" if one is empty."""
        ends = [row[low], row[high]]
        return "" if None in ends else " to ".join(fmt.significant(factor * end) for end in ends)

    names, compiled = _compiled(expression)
    try:
        value = compiled(**row, span=span, interval=interval, inf=math.inf)
    except TypeError:
        if all(row.get(name, "") is not None for name in names):
            raise
        return None
    if isinstance(value, jinja2.Undefined):
        str(value)
    return value


def _cells(columns: Sequence[ColumnSpec], row: Mapping[str, Any]) -> list[TableCell]:
    """Return the cells of a row; without values its status is shown once."""
    cells = [spec.cell(row) for spec in columns]
    state = TableCell(fmt.words(row.get("status")))
    alone = cells[:1] == [state] and set(cells) <= {state}
    return [state, *([TableCell("")] * (len(cells) - 1))] if alone else cells


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Return the distinct values: numbers ascending, texts in order."""
    found = list(dict.fromkeys(values))
    return found if any(isinstance(value, str | bool) for value in found) else sorted(found)


def _columns(specs: Mapping[str, Any]) -> list[ColumnSpec]:
    return [
        ColumnSpec(spec) if isinstance(spec, str) else ColumnSpec(**spec) for spec in specs.values()
    ]


def _plain(frame: pd.DataFrame) -> Iterable[dict[Any, Any]]:
    """Return the rows as dictionaries, None for missing values."""
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def _notes(rows: Iterable[Mapping[str, Any]], note: str) -> list[str]:
    """Return the distinct texts of a note, each with its number of cells."""
    counts = Counter(
        (part, "batch_size" in row)
        for row in rows
        for part in (evaluate(note, row) or "").split("; ")
        if part
    )
    return [
        f"{text} ({fmt.plural(count, 'cell')})" if of_cells else text
        for (text, of_cells), count in counts.items()
    ]


def _unless_empty(write: Callable[..., str]) -> Callable[..., str | None]:
    return lambda value, *options: None if value is None else write(value, *options)


FILTERS: dict[str, Callable[..., str]] = fmt.FILTERS | {
    "count": lambda value: f"{int(value):,}",
    "fixed": lambda value, digits=2: f"{value:.{digits}f}".replace("-", "−"),
    "gpus": fmt.gpus,
    "int": lambda value: str(int(value)),
    "plural": fmt.plural,
    "points": lambda share: fmt.points(100 * share),
    "rate": fmt.rate,
    "share": lambda value: "< 0.001 %" if 0 < value < 1e-5 else f"{100 * value:.3g} %",
}
_ENVIRONMENT = jinja2.Environment(undefined=jinja2.StrictUndefined)
_ENVIRONMENT.filters |= {name: _unless_empty(write) for name, write in FILTERS.items()}


@cache
def _compiled(expression: str) -> tuple[set[str], Callable[..., Any]]:
    """Return the names in an expression, and the expression as a function of their values."""
    names = meta.find_undeclared_variables(_ENVIRONMENT.parse(f"{{{{ {expression} }}}}"))
    return names, _ENVIRONMENT.compile_expression(expression, undefined_to_none=False)
