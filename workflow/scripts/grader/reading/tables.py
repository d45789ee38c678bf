"""The cells of a table by what they hold, whether its columns or its rows say so."""

import re
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple, get_args

from grader.reading.grids import Grid
from grader.reading.words import MISSING, OOM, Label, decimal_comma, label, number
from grader.rows import Timing
from scaling.core.errors import UserError
from scaling.core.records.fields import Status

AXES = {"gpus": "batch_size", "batch_size": "gpus"}
REPEATED = [*AXES, "study", "strategy", "model"]
"""What may stand in the first of several rows alone."""
IDENTITY = [*REPEATED, "parameters", "status", "count"]
FIGURES = [name for name in Timing.model_fields if name not in IDENTITY]
WHOLE, WITHOUT = "epoch_seconds", "epoch_seconds_without_loading"
TIMES = [WHOLE, "time", "throughput"]
QUANTITIES = [*FIGURES, *TIMES]
LOWER = ["strategy", "status"]
WORDS = [*LOWER, "study", "model"]
EXACT = {*Timing.model_fields} - {"count", "epoch_seconds_min", "epoch_seconds_max"}
"""The columns of timings.csv: what has them all is read as it stands."""


class Cell(NamedTuple):
    """What stands in a table, as `Timing` has it, and what says what it is, `source` in words."""

    text: str
    plain: str
    line: int
    source: str
    label: Label


Row = dict[str, Cell]


class Table:
    """Hold the table `grid` of the file at `path`, with what each column is.

    Raises UserError where a column or its numbers may be read in two ways.
    """

    def __init__(self, path: Path, grid: Grid) -> None:
        self.where, self.grid = f"{path}, line {grid.line}", grid
        self.heads = _heads(grid.header)
        self.bare = [next(filter(str.isdecimal, parts), "") for parts in self.heads]
        words = [" ".join(p for p in dict.fromkeys(h) if not p.isdecimal()) for h in self.heads]
        corner = re.split(r"[\\/|]", words[0])[0] if any(self.bare) else words[0]
        self.labels = [label(text.strip()) for text in [corner, *words[1:]]]
        columns = zip(*(fields for _, fields in grid.rows), strict=True)
        self.cells = [[text for text in column if text] for column in columns]
        self.exact = {one.field for one in self.labels} >= EXACT
        self.ours = grid.separator == "," and {parts[0] for parts in self.heads} >= EXACT
        self.comma = self._decimal_comma()
        self.told = [
            j
            for j, cells in enumerate(self.cells)
            if cells
            and self.labels[j].field not in IDENTITY
            and all(label(c).values for c in cells)
        ]
        self.keys = self._keys()
        self.fields = self._fields()
        read = {*self.told, *self.keys.values(), *self.fields}
        left = [j for j, cells in enumerate(self.cells) if cells and j not in read]
        self.passed = [self.labels[j].text for j in left if self.labels[j].text]

    def _decimal_comma(self) -> bool:
        cells = [text for column in self.cells for text in column]
        if self.exact and self.grid.separator == ",":
            return False
        if (comma := decimal_comma(cells)) is None and self.grid.separator != ";":
            one = next(text for text in cells if re.search(r"\d,\d", text))
            raise UserError(
                f"{self.where}: {one} may have a decimal comma or separate thousands; write it "
                "with a decimal point, or without a comma"
            )
        return comma is not False

    def _keys(self) -> dict[str, int]:
        """The columns of what a row is about: of two batch sizes that of each GPU."""
        found = dict[str, int]()
        for j, one in sorted(enumerate(self.labels), key=lambda pair: pair[1].whole):
            axis = (
                self.exact
                or one.field not in AXES
                or all(_count(text, one.field, self.comma) for text in self.cells[j])
            )
            if one.field in IDENTITY and not one.values and axis:
                found.setdefault(one.field, j)
        if not self.labels[0].text and 0 not in self.told:
            across = {axis for one in self.labels for axis in one.values}
            found.setdefault("gpus" if "batch_size" in {*across, *found} else "batch_size", 0)
        return found

    def _fields(self) -> dict[int, str]:
        """What each column of figures holds, "" where the text beside or above says it."""
        alike = dict[tuple[str, str], list[int]]()
        for j, one in enumerate(self.labels):
            if j in {*self.told, *self.keys.values()} or not (self.cells[j] or self.exact):
                continue
            if one.field.startswith("?"):
                raise UserError(f"{self.where}: `{one.text}` may be {one.field[1:]}; say which")
            if one.field in QUANTITIES or self.bare[j] or one.values:
                field = WHOLE if one.field in TIMES else one.field
                field = "" if field not in FIGURES else field
                alike.setdefault((field, f"{one.values} {self.bare[j]}"), []).append(j)
        found = dict[int, str]()
        for (field, where), same in alike.items():
            if field == WHOLE:
                same = [j for j in same if self.labels[j].field != "throughput"] or same
                if len(same) == 2 and (WITHOUT, where) not in alike:
                    shorter, same = self._shorter(*same)
                    found |= dict.fromkeys(shorter, WITHOUT)
            if len(same) > 1:
                names = " and ".join(f"`{self.labels[j].text}`" for j in same[:4])
                raise UserError(
                    f"{self.where}: {names} may each be the {said(field)}; keep one of them, or "
                    "write how they differ"
                )
            found[same[0]] = field
        return found

    def _shorter(self, a: int, b: int) -> tuple[list[int], list[int]]:
        """Of two times the one that is no total, else is never longer; then the other or both."""
        one, other = self.labels[a], self.labels[b]
        pairs = [[number(fields[j], self.comma) for j in (a, b)] for _, fields in self.grid.rows]
        less = {Decimal(x[0]) < Decimal(y[0]) for x, y in pairs if x and y and x[0] != y[0]}
        if one.whole != other.whole:
            less = {other.whole}
        if len(less) != 1 or one.text == other.text:
            return [], [a, b]
        return ([a], [b]) if less.pop() else ([b], [a])

    def rows(self) -> list[Row]:
        """The cells of the table, one for each of what its rows and columns are about."""
        found, above, caption = list[Row](), Row(), label(self.grid.caption)
        told = {axis for j in self.told for text in self.cells[j] for axis in label(text).values}
        across = AXES["batch_size" if "batch_size" in {*self.keys, *told} else "gpus"]
        for line, fields in self.grid.rows:
            for field, j in self.keys.items():
                if fields[j] or self.exact or field not in REPEATED:
                    above[field] = self._cell(field, fields[j], line, j, self.labels[j])
            about = _fixed(caption, line, caption.text)
            about |= {field: cell for field, cell in above.items() if cell.text or self.exact}
            for j in self.told:
                about |= _fixed(label(fields[j]), line, fields[j])
            by = dict[str, Row]()
            for j, text in ((j, fields[j]) for j in self.fields):
                where = about | _fixed(self.labels[j], line, self.heads[j][0])
                if bare := self.bare[j]:
                    where |= _fixed(Label(bare, "", {across: bare}), line, bare)
                row = by.setdefault(str([where[a].plain for a in REPEATED if a in where]), where)
                if text.lower() in get_args(Status) or OOM.fullmatch(text):
                    row.setdefault("status", self._cell("status", text, line, j, self.labels[j]))
                elif self.exact or (text and text.lower() not in MISSING):
                    field, one = self._quantity(j, caption)
                    row[field] = self._cell(field, text, line, j, one)
            found += [r for r in by.values() if self.exact or r.keys() & {*FIGURES, "status"}]
        return found

    def _quantity(self, j: int, caption: Label) -> tuple[str, Label]:
        """What a column's figures are, by its header or else by the corner or the text above."""
        own, known = self.labels[j], [x for x in (self.labels[0], caption) if x.field in QUANTITIES]
        if own.field not in QUANTITIES:
            if not known:
                raise UserError(
                    f"{self.where}: nothing says what the figures of `{self.heads[j][-1]}` are; "
                    "write seconds, speedup or another quantity above them"
                )
            own = known[0]
        unit = next((one.factor for one in known if one.field == own.field), None)
        field = self.fields[j] or (WHOLE if own.field in TIMES else own.field)
        return field, own._replace(factor=own.factor or unit)

    def _cell(self, field: str, text: str, line: int, j: int, one: Label) -> Cell:
        source = self.heads[j][-1] or one.text or said(field)
        if field in WORDS:
            plain = "oom" if OOM.fullmatch(text) else re.sub(r"\s+", "-", text)
            plain = label(text).values.get(field, plain.lower()) if field in LOWER else plain
            return Cell(text, plain, line, source, one)
        digits, factor = number(text, self.comma) or (text, None)
        plain = (field in AXES and _count(text, field, self.comma)) or digits
        return Cell(text, plain, line, source, one._replace(factor=factor or one.factor))


def _heads(header: list[list[str]]) -> list[list[str]]:
    """The parts of each column's header; an empty one above others continues the one before."""
    width, lines = len(header[0]), list[list[str]]()
    for above, line in enumerate(header, 1 - len(header)):
        filled = list[str]()
        for part in [*line, *[""] * width][:width]:
            filled.append(part or (filled[-1] if filled and above else ""))
        lines.append(filled)
    return [list(parts) for parts in zip(*lines, strict=True)]


def _fixed(one: Label, line: int, source: str) -> Row:
    """What a label fixes, as cells."""
    return {axis: Cell(text, text, line, source, one) for axis, text in one.values.items()}


def _count(text: str, axis: str, comma: bool) -> str:
    """The whole number in a cell of an axis, "" if there is none."""
    digits, _ = number(text, comma) or ("", None)
    found = re.fullmatch(r"(\d+)(?:\.0+)?", digits)
    return found[1] if found else label(text).values.get(axis, "")


def said(field: str) -> str:
    """A field of `Timing` in words."""
    words = {"gpus": "GPUs", "batch_size": "batch"}
    return words.get(field, field.removeprefix("printed_").replace("epoch_", "").replace("_", " "))
