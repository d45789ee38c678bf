"""The cells of a table by what they hold, whether its columns or its rows say so."""

import re
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple, get_args

from grader.reading.grids import VALUE, Grid
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
        self.comma = self._decimal_comma()
        self.told = [j for j, cells in enumerate(self.cells) if self._tells(j, cells)]
        self.keys = self._keys()
        self.fields = self._fields()
        read = {*self.told, *self.keys.values(), *self.fields}
        self.passed = [
            one.text
            for j, one in enumerate(self.labels)
            if one.text and self.cells[j] and j not in read
        ]
        self.ours = grid.separator == "," and {parts[0] for parts in self.heads} >= EXACT

    def _decimal_comma(self) -> bool:
        if self.exact and self.grid.separator == ",":
            return False
        cells = [text for column in self.cells for text in column]
        comma = decimal_comma(cells)
        if comma is None and self.grid.separator != ";":
            one = next(text for text in cells if re.search(r"\d,\d", text))
            raise UserError(
                f"{self.where}: {one} may have a decimal comma or separate thousands; write it "
                "with a decimal point, or without a comma"
            )
        return comma is not False

    def _tells(self, j: int, cells: list[str]) -> bool:
        """Whether the cells of a column are labels, as `1-GPU` is."""
        found = [label(cell) for cell in cells if self.labels[j].field not in IDENTITY]
        return bool(found) and all(
            one.values or (one.field in (*FIGURES, *TIMES) and not VALUE.match(one.text))
            for one in found
        )

    def _keys(self) -> dict[str, int]:
        """The columns of what a row is about: of two batch sizes that of each GPU."""
        found = dict[str, int]()
        for j, one in sorted(enumerate(self.labels), key=lambda pair: pair[1].whole):
            counts = one.field not in AXES or all(_count(f, one.field) for f in self.cells[j])
            if one.field in IDENTITY and not one.values and (counts or self.exact):
                found.setdefault(one.field, j)
        if not self.labels[0].text and 0 not in self.told:
            across = {axis for one in self.labels for axis in one.values}
            found.setdefault("gpus" if "batch_size" in {*across, *found} else "batch_size", 0)
        return found

    def _fields(self) -> dict[int, str]:
        """What each column of figures holds, "" where its row or the text above says it."""
        alike: dict[tuple[str, str], list[int]] = {}
        for j, one in enumerate(self.labels):
            if one.field.startswith("?"):
                raise UserError(f"{self.where}: `{one.text}` may be {one.field[1:]}; say which")
            figures = one.field in (*FIGURES, *TIMES) or self.bare[j] or one.values
            if figures and self.cells[j] and j not in {*self.told, *self.keys.values()}:
                field = WHOLE if one.field in TIMES else one.field
                alike.setdefault((field, f"{one.values} {self.bare[j]}"), []).append(j)
        found = dict[int, str]()
        for (field, where), same in alike.items():
            if field == WHOLE:
                same = [j for j in same if self.labels[j].field != "throughput"] or same
                same = [j for j in same if not self.labels[j].per_step] or same
                if len(same) == 2 and (WITHOUT, where) not in alike:
                    shorter, same = self._shorter(*same)
                    found |= dict.fromkeys(shorter, WITHOUT)
            if len(same) > 1:
                names = " and ".join(f"`{self.labels[j].text}`" for j in same[:4])
                raise UserError(f"{self.where}: {names} may each be the {said(field)}; keep one")
            found[same[0]] = field
        return found

    def _shorter(self, a: int, b: int) -> tuple[list[int], list[int]]:
        """Of two times the one that is no total, else is never longer; then the other or both."""
        one, other = self.labels[a], self.labels[b]
        if one.whole != other.whole:
            return ([b], [a]) if one.whole else ([a], [b])
        pairs = [[number(fields[j], self.comma) for j in (a, b)] for _, fields in self.grid.rows]
        less = {Decimal(x[0]) < Decimal(y[0]) for x, y in pairs if x and y and x[0] != y[0]}
        if len(less) != 1 or one.text == other.text:
            return [], [a, b]
        return ([a], [b]) if less.pop() else ([b], [a])

    def rows(self) -> list[Row]:
        """The cells of the table, one for each of what its rows and columns are about."""
        found, above = list[Row](), Row()
        labels = [label(text) for j in self.told for text in self.cells[j]]
        stated = {*self.keys, *(axis for one in labels for axis in one.values)}
        across = AXES["batch_size" if "batch_size" in stated else "gpus"]
        caption = label(self.grid.caption)
        for line, fields in self.grid.rows:
            for field, j in self.keys.items():
                if fields[j] or self.exact or field not in REPEATED:
                    above[field] = self._cell(field, fields[j], line, j, self.labels[j])
            about = _fixed(caption, line, caption.text)
            about |= {field: cell for field, cell in above.items() if cell.text or self.exact}
            row_labels = [label(fields[j]) for j in self.told]
            for one in row_labels:
                about |= _fixed(one, line, one.text)
            beside = [*row_labels, self.labels[0], caption]
            by = dict[str, Row]()
            for j in self.fields:
                where = about | _fixed(self.labels[j], line, self.heads[j][0])
                if self.bare[j]:
                    fixed = Label(self.bare[j], "", {across: self.bare[j]})
                    where |= _fixed(fixed, line, fixed.text)
                row = by.setdefault(str([where[a].plain for a in REPEATED if a in where]), where)
                if (text := fields[j]).lower() in get_args(Status) or OOM.fullmatch(text):
                    row.setdefault("status", self._cell("status", text, line, j, self.labels[j]))
                elif self.exact or (text and text.lower() not in MISSING):
                    field, one = self._quantity(j, beside)
                    row[field] = self._cell(field, text, line, j, one)
            found += [r for r in by.values() if self.exact or r.keys() & {*FIGURES, "status"}]
        return found

    def _quantity(self, j: int, beside: list[Label]) -> tuple[str, Label]:
        """What a column's figures are, by its header or else by what stands beside and above."""
        own, known = self.labels[j], [one for one in beside if one.field in (*FIGURES, *TIMES)]
        if own.field not in (*FIGURES, *TIMES):
            if not known:
                name = f"`{' '.join(filter(None, self.heads[j]))}`"
                raise UserError(
                    f"{self.where}: nothing says what the figures of {name} are; write "
                    "seconds, speedup or another quantity above them"
                )
            own = known[0]
        unit = next((one.factor for one in known if one.field == own.field and one.factor), None)
        field = self.fields[j] or (WHOLE if own.field in TIMES else own.field)
        return field, own._replace(factor=own.factor or unit)

    def _cell(self, field: str, text: str, line: int, j: int, one: Label) -> Cell:
        source = self.heads[j][-1] or one.text or said(field)
        if field in (*FIGURES, *AXES, "count", "parameters"):
            digits, factor = number(text, self.comma) or (text, None)
            plain = _count(text, field) if field in AXES else digits
            return Cell(
                text, plain or digits, line, source, one._replace(factor=factor or one.factor)
            )
        words = {"status": "oom" if OOM.fullmatch(text) else text.lower(), "strategy": text.lower()}
        words |= label(text).values if field == "strategy" else {}
        return Cell(text, words.get(field, re.sub(r"\s+", "-", text)), line, source, one)


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


def _count(text: str, axis: str) -> str:
    """The whole number in a cell of an axis, "" if there is none."""
    found = re.fullmatch(r"(\d+)(?:\.0+)?(?: ?\(.*\))?", text)
    return found[1] if found else label(text).values.get(axis, "")


def said(field: str) -> str:
    """A field of `Timing` in words."""
    words = {"gpus": "GPUs", "batch_size": "batch"}
    return words.get(field, field.removeprefix("printed_").replace("epoch_", "").replace("_", " "))
