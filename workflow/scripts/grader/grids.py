"""Split files into tables: CSV, TSV, Markdown or the sheets of a workbook, as lines of fields."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import BadZipFile

import pandas as pd

from scaling.core import files
from scaling.core.errors import UserError

MOST_BYTES, MOST_LINES, MOST_COLUMNS = 10**7, 100_000, 1000
TEMPLATE = "write columns gpus, batch_size and epoch_seconds, as in studies/template.csv"
RULE = re.compile(r"[|:+=\s-]*-[|:+=\s-]*")
Row = tuple[int, list[str]]
"""The number of a line, and its fields."""


@dataclass
class Grid:
    """A table: rows of fields by their lines, headers among them, and the text above it."""

    text: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)


def grids(path: Path) -> Iterator[Grid]:
    """Yield the tables of a file with the text above each; UserError where it cannot be read."""
    yield from _sheets(path) if path.suffix.lower() == ".xlsx" else _grids(path)


def _decoded(path: Path) -> str:
    data = files.regular(path, MOST_BYTES, within=path.parent).read_bytes()
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"", "utf-8-sig")):
        if data.startswith(mark):
            try:
                return data.decode(encoding)
            except UnicodeDecodeError:
                continue
    text = data.decode("cp1252", errors="replace")
    if "\0" in text or "\ufffd" in text:
        raise UserError(f"{path} cannot be read as text; save it as CSV in UTF-8")
    return text


def _grids(path: Path) -> Iterator[Grid]:
    """Yield the tables of a text; what stands before a table is its text."""
    text = _decoded(path)
    lines = text.splitlines()
    if len(lines) > MOST_LINES:
        raise UserError(f"{path}: there are more than {MOST_LINES:,} lines; {TEMPLATE}")
    if any(line.lstrip().startswith("|") for line in lines) or path.suffix == ".md":
        rows: Iterator[Row] = ((i, _cells(line)) for i, line in enumerate(lines, 1))
        rule = {i for i, line in enumerate(lines, 1) if "|" in line and RULE.fullmatch(line)}
    else:
        rows, rule = _separated(path, lines), set[int]()
    grid, blank = Grid(), False
    for number, fields in rows:
        if number in rule:
            # A rule below the last of several rows begins another table.
            if len(grid.rows) > 1:
                *before, last = grid.rows
                yield Grid(grid.text, before)
                grid = Grid([], [last])
        elif len(fields) > 1 and sum(map(bool, fields)) > 1:
            if blank and not _goes_on(grid, fields):
                yield grid
                grid = Grid()
            grid.rows.append((number, fields))
            blank = False
        elif len(grid.rows) > 1 and not any(fields):
            blank = True
        else:
            blank = False
            if len(grid.rows) > 1:
                yield grid
                grid = Grid()
            grid.text += [*("  ".join(fields) for _, fields in grid.rows), *filter(None, fields)]
            grid.rows = []
    yield grid


def _goes_on(grid: Grid, fields: list[str]) -> bool:
    """Whether a line below an empty one is another row of the table, and no header."""
    numbers = any(one.isdecimal() for one in fields)
    return bool(fields[0]) and numbers and len(fields) == len(grid.rows[0][1])


def _cells(line: str) -> list[str]:
    if "|" not in line:
        return [line.strip()]
    cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [cell.replace("\\|", "|").strip() for cell in cells]


def _separated(path: Path, lines: list[str]) -> Iterator[Row]:
    """Yield the lines of a CSV of any separator as fields; an open quote is refused."""
    first = lines[0].strip('"') if lines else ""
    if named := re.fullmatch(r"(?i)sep=(.)", first):
        lines = ["", *lines[1:]]
    counts = Counter({one: sum(one in line for line in lines) for one in "\t;,"})
    separator = named[1] if named else counts.most_common(1)[0][0]
    if not named and separator == ";" and counts[","] == counts[";"]:
        separator = max(";,", key=lambda one: lines[0].count(one))
    reader = csv.reader(io.StringIO("\n".join(lines)), delimiter=separator, skipinitialspace=True)
    number = 1
    while True:
        try:
            fields = next(reader, None)
        except csv.Error:
            raise UserError(f"{path}, line {number}: a quote is not closed; close it") from None
        if fields is None:
            return
        if any("\n" in one for one in fields):
            raise UserError(f"{path}, line {number}: a quote is not closed; close it")
        if len(fields) > MOST_COLUMNS:
            said = f"there are {len(fields):,} columns, more than {MOST_COLUMNS:,}"
            raise UserError(f"{path}, line {number}: {said}; {TEMPLATE}")
        yield number, [one.strip() for one in fields]
        number = reader.line_num + 1


def _sheets(path: Path) -> Iterator[Grid]:
    files.regular(path, MOST_BYTES, within=path.parent)
    try:
        sheets = pd.read_excel(path, sheet_name=None, header=None, dtype=str, nrows=20_000)
    except (ValueError, KeyError, OSError, BadZipFile) as error:
        raise UserError(f"{path} cannot be read as a workbook; save it as CSV") from error
    for name, sheet in sheets.items():
        rows = [
            [one.strip() for one in row] for row in sheet.fillna("").astype(str).values.tolist()
        ]
        filled = [(i, row) for i, row in enumerate(rows, 1) if sum(map(bool, row)) > 1]
        yield Grid(
            [name, *(one for row in rows if sum(map(bool, row)) == 1 for one in row)], filled
        )
