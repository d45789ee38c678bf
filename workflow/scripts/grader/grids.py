"""Split files into tables: CSV, TSV, Markdown or the sheets of a workbook, as lines of fields."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import BadZipFile

import pandas as pd

from scaling.core import files
from scaling.core.errors import UserError

MOST_BYTES, MOST_LINES, MOST_COLUMNS = 10**7, 100_000, 1000
RULE = re.compile(r"[|:+=\s-]*-[|:+=\s-]*")
Row = tuple[int, list[str]]
"""The number of a line, and its fields."""


@dataclass
class Grid:
    """A table: rows of fields with their line numbers, including headers, and the text above it."""

    text: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)


def grids(path: Path) -> Iterator[Grid]:
    """Yield the tables of a file with the text above each; UserError if the file is unreadable."""
    files.regular(path, MOST_BYTES, within=path.parent)
    grid, blank = Grid(), False
    for line, fields in _sheets(path) if path.suffix.lower() == ".xlsx" else _lines(path):
        if sum(map(bool, fields)) > 1:
            if blank and not _goes_on(grid, fields):
                yield grid
                grid = Grid()
            grid.rows.append((line, fields))
            blank = False
        elif len(grid.rows) > 1 and not any(fields):
            blank = True
        else:
            if len(grid.rows) > 1:
                yield grid
                grid = Grid()
            texts = ["  ".join(one) for _, one in grid.rows] + [one for one in fields if one]
            grid, blank = Grid(grid.text + texts), False
    yield grid


def _goes_on(grid: Grid, fields: list[str]) -> bool:
    """Return whether a line below an empty one is another row of the table, not a header."""
    numbers = any(one.isdecimal() for one in fields)
    return bool(fields[0]) and numbers and len(fields) == len(grid.rows[0][1])


def _lines(path: Path) -> Iterator[Row]:
    """Yield the lines of a text file as fields: Markdown, or CSV with any separator."""
    lines = _decoded(path).splitlines() or [""]
    if len(lines) > MOST_LINES:
        raise UserError(f"{path}: there are more than {MOST_LINES:,} lines; split the file")
    if path.suffix == ".md" or any(line.lstrip().startswith("|") for line in lines):
        for number, line in enumerate(lines, 1):
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            if not ("|" in line and RULE.fullmatch(line)):
                yield number, [cell.replace("\\|", "|").strip() for cell in cells]
        return
    counts = {one: (sum(one in line for line in lines), lines[0].count(one)) for one in "\t;,"}
    separator = max(counts, key=lambda one: counts[one])
    if named := re.fullmatch(r'(?i)"?sep=(.)"?', lines[0]):
        separator, lines[0] = named[1], ""
    try:
        rows = list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
    except csv.Error:
        rows = []
    if len(rows) < len(lines):
        raise UserError(f"{path} cannot be read as CSV: a quote is not closed; close its quotes")
    if (most := max(map(len, rows))) > MOST_COLUMNS:
        raise UserError(f"{path}: there are {most:,} columns, more than {MOST_COLUMNS:,}")
    yield from ((i, [one.strip() for one in row] or [""]) for i, row in enumerate(rows, 1))


def _decoded(path: Path) -> str:
    data = path.read_bytes()
    try:
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", errors="replace")
    if "\0" in text or "\ufffd" in text:
        raise UserError(f"{path} cannot be read as text; save it as CSV in UTF-8")
    return text


def _sheets(path: Path) -> Iterator[Row]:
    """Yield the rows of a workbook; each sheet begins with a row that has its name."""
    try:
        sheets = pd.read_excel(path, sheet_name=None, header=None, dtype=str, nrows=20_000)
    except (ValueError, KeyError, OSError, BadZipFile) as error:
        raise UserError(f"{path} cannot be read as a workbook; save it as CSV") from error
    for name, sheet in sheets.items():
        yield 0, [str(name)]
        for number, row in enumerate(sheet.fillna("").astype(str).to_numpy().tolist(), 1):
            yield number, [one.strip() for one in row]
