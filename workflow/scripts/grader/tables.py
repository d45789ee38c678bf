"""Find out what each cell of a table means, from the headers of its column and row."""

import re
from decimal import Decimal
from pathlib import Path
from typing import get_args

import pandas as pd

from grader.fields import MISSING, NUMBER, OOM, Grid, Label, Timing, label, number
from scaling.core.errors import UserError
from scaling.core.records.kind import Status

AXES = {"gpus": "batch_size", "batch_size": "gpus"}
REPEATED = [*AXES, "study", "strategy", "model"]
"""Fields that may be written in the first of several rows only."""
IDENTITY = [*REPEATED, "parameters", "status", "count"]
FIGURES = [name for name in Timing.model_fields if name not in IDENTITY]
WHOLE, WITHOUT = "epoch_seconds", "epoch_seconds_without_loading"
TIMES = [WHOLE, "time", "throughput"]
QUANTITIES = [*FIGURES, *TIMES]
Texts = dict[str, str]
"""The fields of a cell as texts, and the `line` of the file it stands in."""


class Table:
    """Hold the table `grid` of the file at `path`, with what each column is.

    Raises UserError where a column or its numbers may be read in two ways.
    """

    def __init__(self, path: Path, grid: Grid, images: int) -> None:
        self.where, self.grid, self.images = f"{path}, line {grid.line}", grid, images
        self.heads = _heads(grid.header)
        bare = [next(filter(str.isdecimal, parts), "") for parts in self.heads]
        words = [" ".join(p for p in dict.fromkeys(h) if not p.isdecimal()) for h in self.heads]
        corner = re.split(r"[\\/|]", words[0])[0] if any(bare) else words[0]
        self.labels = [label(text.strip()) for text in [corner, *words[1:]]]
        columns = zip(*(fields for _, fields in grid.rows), strict=True)
        self.cells = [[text for text in column if text] for column in columns]
        self.comma = self._decimal_comma()
        # Columns of labels such as `1-GPU`.
        self.told = [
            j
            for j, (one, cells) in enumerate(zip(self.labels, self.cells, strict=True))
            if one.field not in IDENTITY and cells and all(label(cell).values for cell in cells)
        ]
        self.keys = self._keys()
        self.of_all = "batch_size" in self.keys and self.labels[self.keys["batch_size"]].whole
        # Headers that are only numbers are of the other axis.
        told = {axis for j in self.told for text in self.cells[j] for axis in label(text).values}
        across = AXES["batch_size" if "batch_size" in {*self.keys, *told} else "gpus"]
        for j, number_only in enumerate(bare):
            if number_only:
                values = {**self.labels[j].values, across: number_only}
                self.labels[j] = self.labels[j]._replace(values=values)
        self.fields = self._fields()
        read = {*self.told, *self.keys.values(), *self.fields}
        left = (one.text for j, one in enumerate(self.labels) if self.cells[j] and j not in read)
        self.passed = [*filter(None, left)]

    def _decimal_comma(self) -> bool:
        """Whether numbers have a decimal comma; refused where one may separate thousands."""
        texts = (text.strip("* `$") for column in self.cells for text in column)
        figures = [found[1] for text in texts if (found := NUMBER.fullmatch(text))]
        commas = [one for one in figures if "," in one]
        point = re.compile(r"^[^,]*\.(?!\d{3}(?:,|$))\d|,\d+[.,]")
        if not commas or any(map(point.search, figures)):
            return False
        sure = any(re.search(r"^\D?0,|,(?!\d{3}$)|\.", one) for one in commas)
        if not sure and self.grid.separator != ";":
            raise UserError(
                f"{self.where}: {commas[0]} may have a decimal comma or separate thousands; write "
                "it with a decimal point, or without a comma"
            )
        return True

    def _keys(self) -> dict[str, int]:
        """Return the column of each field that identifies a row; the batch size is that per GPU."""
        found = dict[str, int]()
        for j, one in sorted(enumerate(self.labels), key=lambda pair: pair[1].whole):
            field = one.field
            # GPUs and batch sizes are whole numbers.
            sure = field not in AXES or one.text.lower() == field
            whole = sure or all(self._count(text, field) for text in self.cells[j])
            if field in IDENTITY and not one.values and whole:
                found.setdefault(field, j)
        if not self.labels[0].text and 0 not in self.told:
            across = {axis for one in self.labels for axis in one.values}
            found.setdefault("gpus" if "batch_size" in {*across, *found} else "batch_size", 0)
        return found

    def _fields(self) -> dict[int, tuple[str, Label]]:
        """Return the field and the label of each column of measured figures."""
        alike = dict[tuple[str, str], list[int]]()
        for j, one in enumerate(self.labels):
            if j in {*self.told, *self.keys.values()} or not self.cells[j]:
                continue
            if one.field.startswith("?"):
                raise UserError(f"{self.where}: `{one.text}` may be {one.field[1:]}; say which")
            if one.field in QUANTITIES or one.values:
                quantity = self._quantity(j)
                field = WHOLE if quantity.field in TIMES else quantity.field
                alike.setdefault((field, str(one.values)), []).append(j)
        found = dict[int, str]()
        for (field, where), same in alike.items():
            if field == WHOLE:
                # Next to a time, images per second are the same measurement.
                same = [j for j in same if self.labels[j].field != "throughput"] or same
                two = len(same) == 2 and (WITHOUT, where) not in alike
                if two and (pair := self._shorter(*same)):
                    found[pair[0]], same = WITHOUT, pair[1:]
            if len(same) > 1:
                names = " and ".join(f"`{self.labels[j].text}`" for j in same[:4])
                raise UserError(
                    f"{self.where}: {names} may each be the {said(field)}; keep one of them, or "
                    "write how they differ"
                )
            found[same[0]] = field
        return {j: (field, self._quantity(j)) for j, field in found.items()}

    def _quantity(self, j: int) -> Label:
        """Return a column's quantity, from its header, the top left cell or the caption."""
        own, others = self.labels[j], [self.labels[0], label(self.grid.caption)]
        known = [one for one in others if one.field in QUANTITIES]
        if own.field not in QUANTITIES and not known:
            raise UserError(
                f"{self.where}: nothing says what the figures of `{self.heads[j][-1]}` are; "
                "write seconds, speedup or another quantity above them"
            )
        field = own.field if own.field in QUANTITIES else known[0].field
        unit = next((one.factor for one in known if one.field == field), None)
        return own._replace(field=field, factor=own.factor or unit)

    def _shorter(self, a: int, b: int) -> list[int]:
        """Return the time column without loading, not called total or else never longer, first."""
        one, other = self.labels[a], self.labels[b]
        pairs = [[number(fields[j], self.comma) for j in (a, b)] for _, fields in self.grid.rows]
        less = {Decimal(x[0]) < Decimal(y[0]) for x, y in pairs if x and y and x[0] != y[0]}
        if one.whole != other.whole:
            less = {other.whole}
        if len(less) != 1 or one.text == other.text:
            return []
        return [a, b] if less.pop() else [b, a]

    def rows(self) -> list[Texts]:
        """Return one row of fields for each combination of GPUs, batch size and so on."""
        found, above = list[Texts](), Texts()
        for line, fields in self.grid.rows:
            for field, j in self.keys.items():
                if fields[j] or field not in REPEATED:
                    above[field] = self._plain(field, fields[j])
            about = {"line": str(line), **label(self.grid.caption).values}
            about |= {field: text for field, text in above.items() if text}
            for j in self.told:
                about |= label(fields[j]).values
            by = dict[str, Texts]()
            for j, (field, one) in self.fields.items():
                where = {**about, **one.values}
                row = by.setdefault(str([where.get(name) for name in REPEATED]), where)
                text = fields[j]
                if text.lower() in get_args(Status) or OOM.fullmatch(text):
                    row.setdefault("status", self._plain("status", text))
                elif text and text.lower() not in MISSING:
                    row[field] = self._figure(text, one, row)
            every = by.values() or [about]
            found += [row for row in every if row.keys() & {*FIGURES, "status"}]
        for row in found if self.of_all else ():
            batch, gpus = _small(row.get("batch_size", "")), _small(row.get("gpus", ""))
            if batch and gpus:
                row["batch_size"] = f"{batch} / {gpus}" if batch % gpus else str(batch // gpus)
        return found

    def sources(self) -> dict[str, tuple[str, str]]:
        """Return the header of each field that was found, and its unit or reference in words."""
        columns = [*self.keys.items(), *((field, j) for j, (field, _) in self.fields.items())]
        found = {field: self.heads[j][-1] or self.labels[j].text or field for field, j in columns}
        for j, (_, one) in reversed(self.fields.items()):
            found |= dict.fromkeys(one.values, self.heads[j][0])
        told = [self.grid.caption, *(text for j in self.told for text in self.cells[j])]
        for text in reversed(told):
            found |= dict.fromkeys(label(text).values, text)
        notes = {"batch_size": ", of all GPUs" if self.of_all else ", per GPU"}
        for field, one in self.fields.values():
            notes[field] = f" x {one.factor}" if one.factor not in (None, 1) else ""
            if one.field == "throughput":
                notes[field] = ", images per second" + " of each GPU" * one.per_gpu
            elif field == WITHOUT and one.field == "time":
                notes[field] = ", the shorter time"
        return {field: (words, notes.get(field, "")) for field, words in found.items()}

    def _plain(self, field: str, text: str) -> str:
        """Return the text of a cell without a measured figure, spelled as in timings.csv."""
        if field in ("strategy", "status"):
            return label(text).values.get(field, "oom" if OOM.fullmatch(text) else text.lower())
        if field in ("study", "model"):
            return re.sub(r"\s+", "-", text)
        return self._count(text, field) or text

    def _count(self, text: str, axis: str) -> str:
        """Return the whole number in a cell, or ""."""
        digits, _ = number(text, self.comma) or ("", None)
        found = re.fullmatch(r"(\d+)(?:\.0+)?", digits)
        return found[1] if found else label(text).values.get(axis, "")

    def _figure(self, text: str, one: Label, row: Texts) -> str:
        """Return a figure converted to seconds, GB/s, percent or a ratio; other texts unchanged."""
        if not (found := number(text, self.comma)):
            return text
        digits, unit = found
        factor = unit or one.factor or Decimal(1)
        gpus = (one.per_gpu and _small(row.get("gpus", ""))) or 1
        rate = one.field == "throughput"
        value = Decimal(digits)
        if (factor == 1 and not rate) or not value or abs(value.adjusted()) >= 15:
            return digits
        made = self.images / value / gpus if rate else value * factor
        return str(round(made, min(len(value.as_tuple().digits), 25) - 1 - made.adjusted()))


def _small(text: str) -> int:
    """Return a possible batch size or number of GPUs, or 0."""
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _heads(header: list[list[str]]) -> list[list[str]]:
    """Return the parts of each column's header, top down; an empty merged cell repeats its left."""
    lines = pd.DataFrame(header).reindex(columns=range(len(header[0])))
    lines = lines.where(lines != "")
    filled = pd.concat([lines[:-1].ffill(axis=1), lines[-1:]]).fillna("")
    return filled.T.to_numpy().tolist()


def said(field: str) -> str:
    """Return the name of a field of `Timing` in words."""
    words = {"gpus": "GPUs", "batch_size": "batch"}
    return words.get(field, field.removeprefix("printed_").replace("epoch_", "").replace("_", " "))
