"""Split a file into tables of texts: CSV of any kind, Markdown, aligned columns, workbooks."""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import pandas as pd

from grader.fields import MISSING, OOM, label
from scaling.core import files
from scaling.core.errors import UserError

MOST_BYTES, MOST_ROWS, MOST_SHEET_ROWS = 10 * 10**6, 100_000, 2000
"""Limits of a file, and of a sheet of a workbook: a study has a few dozen rows."""
Records = list[tuple[int, list[str]]]
"""Lines by their number, as fields."""
RULE = re.compile(r"(?i)(?=.*-)[|:+=\s-]*|\s*\"?sep=.*", re.DOTALL)
"""What only draws a rule, as below a header in Markdown, or names the separator."""
VALUE = re.compile(r"[~≈<>(* ]*[-+−]?[.,]?\d")


class Grid(NamedTuple):
    """A table of texts: caption, number of its first line, header, rows and field separator."""

    caption: str
    line: int
    header: list[list[str]]
    rows: Records
    separator: str


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return what is in a file that somebody handed in; UserError as `files.regular`."""
    try:
        return files.regular(path, most, linked=False).read_bytes()
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}); save it as UTF-8 text") from error


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """Return the text of a file: UTF-8, UTF-16, or Windows' Latin-1; UserError for what is none."""
    data = read_bytes(path, most)
    codec = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    for choice in (codec, "cp1252"):
        with suppress(UnicodeError):
            if "\0" not in (text := data.decode(choice)):
                return text
    raise UserError(f"{path} cannot be read as text; save it as UTF-8 text")


def grids(path: Path) -> list[Grid]:
    """The tables of the file at `path`; UserError if it cannot be read, or a row is too long."""
    if not (data := read_bytes(path)).startswith(b"PK"):
        separator, lines = _records(path)
        return list(_grids(path, lines, separator))
    try:
        with ZipFile(BytesIO(data)) as book:
            if sum(part.file_size for part in book.infolist()) > MOST_BYTES:
                raise ValueError("it has too many cells")
        sheets = pd.read_excel(
            path, None, header=None, dtype=str, keep_default_na=False, nrows=MOST_SHEET_ROWS
        )
        if any(len(sheet) == MOST_SHEET_ROWS for sheet in sheets.values()):
            raise ValueError(f"it has {MOST_SHEET_ROWS:,} lines")
    except Exception as error:  # A reader of workbooks raises whatever it meets.
        raise UserError(f"{path} cannot be read as a workbook ({error}); save it as CSV") from error
    found = list[Grid]()
    for name, sheet in sheets.items():
        cells = sheet.fillna("").map(lambda cell: str(cell).strip()).to_numpy().tolist()
        found += _grids(path, list(enumerate(cells, 1)), "sheet", str(name))
    return found


def _records(path: Path) -> tuple[str, Records]:
    """Return the separator of a text file, and its lines split into fields."""
    lines = read_text(path).splitlines(keepends=True)
    if len(lines) > MOST_ROWS:
        raise UserError(f"{path}: there are more than {MOST_ROWS:,} lines; hand in fewer")
    lines = ["\n" if RULE.fullmatch(line) else line for line in lines]
    bars = any(line.startswith("|") for line in lines)
    for separators in ([r"\|"] if bars else ["\t", ";", ",", r"\|"], [r"\s{2,}"], [r"\s+"]):
        choices = {one: _split(lines, one) for one in separators}
        best = max(choices, key=lambda one: _alike(choices[one]))
        if _alike(choices[best]):
            break
    return best, choices[best]


def _split(lines: list[str], separator: str) -> Records:
    """Return the numbers and fields of lines; of Markdown without its outer bars and emphasis."""
    if len(separator) == 1:
        reader = csv.reader(lines, delimiter=separator, skipinitialspace=separator != "\t")
        return [(reader.line_num, [field.strip() for field in fields]) for fields in reader]
    inner = (line.strip().removeprefix("|").removesuffix("|") for line in lines)
    rows = (re.split(separator, line) for line in inner)
    return [(n, [field.strip(" \t*`") for field in row]) for n, row in enumerate(rows, 1)]


def _alike(lines: Records) -> int:
    """Return how many lines share the most common number of fields, if that is more than one."""
    return max(Counter(len(fields) for _, fields in lines if len(fields) > 1).values(), default=0)


def _grids(path: Path, lines: Records, separator: str, name: str = "") -> Iterator[Grid]:
    """Split lines into tables: each header line starts one, and lines of text may precede it."""
    texts, header, rows, first = [name], list[list[str]](), Records(), 0
    for line, fields in [*lines, (0, ["the end"])]:
        heads = any(fields) and (not header or _heads(fields))
        if rows and (heads or (any(fields) and len(fields) == 1)):
            yield Grid(" ".join(filter(None, texts[-2:])), first, header, rows, separator)
            texts, header, rows = [name], [], []
        if sum(map(bool, fields)) == 1 and (len(fields) == 1 or not header):
            texts += [field.strip("# :") for field in fields if field]
        elif heads:
            first = first if header else line
            header.append(fields)
        elif any(fields):
            width = len(header[0])
            short = len(fields) < width and separator in (",", ";")
            if short or any(fields[width:]):
                raise UserError(
                    f"{path}, line {line}: the line has not as many fields as the first one; "
                    "count its commas"
                )
            rows.append((line, [*fields, *[""] * width][:width]))


def _heads(fields: list[str]) -> bool:
    """Return whether a line is a header: no number in it, or as `GPUs, 1, 2, 4`."""
    first, *others = filter(None, fields)
    if not any(VALUE.match(f) or f.lower() in MISSING or OOM.fullmatch(f) for f in fields):
        return True
    names = not VALUE.match(first) and label(first).field in ("gpus", "batch_size") and others
    return bool(names and all(other.isdecimal() or label(other).values for other in others))
