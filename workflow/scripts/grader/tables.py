"""Read the tables of a file into records, one for each row and configuration."""

import csv
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import pandas as pd

from grader.words import IDENTITY, PATTERNS, WORDS, Figure, Head, count, figure, head, named, plain
from scaling.core import files
from scaling.core.errors import UserError

MOST_BYTES, POINTS = 4_000_000, str.maketrans(",", ".", ".")
TEMPLATE = "write columns gpus, batch_size and epoch_seconds, as in studies/template.csv"
CELL = ("recipe", "gpus", "batch_size")
KEYS = {"gpus": "GPUs", "batch_size": "images", "global_batch": "images"}
POSITIVE = {"epoch", "training", "rate", "least", "most"}
Record = dict[str, Any]
"""A configuration: its `line`, the fields that identify it, and its values (`Figure`)."""
Row = tuple[int, list[str]]
"""The number of a line, and its fields."""


@dataclass
class Tables:
    """Records, headers and text of a file. `notes` name the tables, rows and columns left out."""

    records: list[Record] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    heads: list[Head] = field(default_factory=list)
    text: str = ""


def read(path: Path) -> Tables:
    """Return the tables of a file; UserError if none can be read."""
    files.regular(path, MOST_BYTES, within=path.parent)
    tables, caption, above, header = Tables(), "", "", (0, list[str]())
    separator, rows = ("", [*_sheets(path)]) if path.suffix.lower() == ".xlsx" else _lines(path)
    found = list[tuple[int, str, str, list[Head], list[Row]]]()
    for is_table, group in groupby(rows, key=lambda row: sum(map(bool, row[1])) > 1):
        lines = list(group)
        titles = _titles(lines) if is_table and len(lines) > 1 else len(lines)
        for caption in filter(None, (" ".join(fields).strip() for _, fields in lines[:titles])):
            tables.text += f"{caption}\n"
            above = named("strategies", caption.lower(), within=True) or above
        if lines := lines[titles:]:
            if count(lines[0][1][0]) and len(lines[0][1]) == len(header[1]):
                lines = [header, *lines]  # The table goes on below an empty line.
            found.append((lines[0][0], caption, above, *_heads(lines)))
            caption, header = "", lines[0]
    _write_points([(heads, below) for *_, heads, below in found], separator == ";")
    for line, caption, above, heads, below in found:
        try:
            _add(tables, caption, above, heads, below)
        except UserError as error:
            tables.notes.append(f"line {line}: {error}")
    _drop_ratios_of_throughput(tables, rows)
    for one in tables.records if not separator else ():
        one.pop("percent", None)  # A workbook may show its 0.86 as 86 %.
    judged_by = {"epoch", "training", "rate", "communication"}
    if not any(one["status"] or one.keys() & judged_by for one in tables.records):
        why = "; ".join(tables.notes[:3]) or "there is no table of times"
        raise UserError(f"{path}: {why}; {TEMPLATE}")
    return tables


def _drop_ratios_of_throughput(tables: Tables, rows: list[Row]) -> None:
    """Remove speedups and efficiencies that the file says are ratios of throughput.

    A field or sentence that says so is about the configurations named before it (`mine/own, 2 ×
    32: `). If it names none, it is about its row or, outside the rows, about all configurations.
    """
    cells = [tuple(str(one.get(name)) for name in CELL) for one in tables.records]
    lines, named = {one["line"] for one in tables.records}, set[Any]()
    for line, fields in rows:
        text = ", ".join(fields)
        if note := PATTERNS["of_throughput"].search(text):
            before = PATTERNS["cell"].findall(text[: note.start()].rpartition(". ")[2])
            named |= {*before}.intersection(cells) or {line} & lines or lines
    for one, cell in zip(tables.records, cells, strict=True):
        if {one["line"], cell} & named:
            one |= {"speedup": None, "efficiency": None, "of_throughput": Figure(1.0, 0.0)}
    tables.notes += ["not checked: speedups, which are of throughput"] * bool(named)


def _titles(lines: list[Row]) -> int:
    """Return the number of lines above a table's headers that are a title with separators."""
    for number, ((_, title), (_, below)) in enumerate(pairwise(lines)):
        names, others = ({head(text).field for text in line} for line in (below, title))
        whole = all(below) and "gpus" in names and names & {"batch_size", "global_batch"}
        comment = re.match(r"#\s", title[0]) and (whole or len(title) != len(below))
        if any(map(_is_value, below)) or not (comment or (whole and others <= {"", *IDENTITY})):
            return number
    return 0


def _lines(path: Path) -> tuple[str, list[Row]]:
    """Return the separator of a text file, and its lines as fields: Markdown, or CSV."""
    lines = re.sub(r'(?i)^"?sep=."?$', "", _decoded(path), flags=re.MULTILINE).splitlines()
    markdown = path.suffix == ".md" or any(line.lstrip().startswith("|") for line in lines)
    if markdown:
        ruled = re.compile(r"(?=.*\|)[|:+=\s-]*-[|:+=\s-]*")
        shown = [row for row in enumerate(lines, 1) if not ruled.fullmatch(row[1])]
        fields = ((n, re.split(r"(?<!\\)\|", line.strip().strip("|"))) for n, line in shown)
        return "|", [(n, [one.strip() for one in row]) for n, row in fields]
    separator = max("\t;,", key=lambda one: sum(one in line for line in lines))
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    try:
        return separator, [(reader.line_num, [one.strip() for one in row]) for row in reader]
    except csv.Error as error:
        raise UserError(f"{path} is no CSV ({error}); close its quotes") from error


def _write_points(tables: list[tuple[list[Head], list[Row]]], semicolons: bool) -> None:
    """Replace decimal commas by decimal points, except in columns that have decimal points.

    A comma is decimal in a speedup, or if not exactly three digits follow it. All commas are
    decimal if one is, or if `semicolons` separate fields and no column has decimal points.
    """
    columns, comma = list[tuple[str, list[Row], int, Any, Any]](), PATTERNS["one_comma"]
    for heads, rows in tables:
        for j, one in enumerate(heads):
            text = " ".join(cells[j] for _, cells in rows)
            decimal = comma if one.field in ("speedup", "efficiency") else PATTERNS["decimal_comma"]
            if one.field not in {"", *IDENTITY} - {"parameters"} or one.batch or one.gpus:
                point = PATTERNS["decimal_point"].search(text)
                columns.append((one.field, rows, j, decimal.search(text), point))
    decided = any(sure for *_, sure, _ in columns)
    if decided or (semicolons and not any(points for *_, points in columns)):
        for name, rows, j, sure, points in columns:
            for _, cells in rows if sure or not points else ():
                if decided and not points and name in ("rate", "tokens", "parameters"):
                    cells[j] = re.sub(r"\.(?=\d{3})", "", cells[j])
                cells[j] = comma.sub(lambda x: x[0].translate(POINTS), cells[j])


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
    """Yield the rows of an Excel workbook. The name of each sheet precedes its rows."""
    try:
        about: Any = {"header": None, "dtype": str, "na_filter": False, "nrows": 20_000}
        sheets = pd.read_excel(path, sheet_name=None, **about)
    except (ValueError, KeyError, OSError, BadZipFile) as error:
        raise UserError(f"{path} cannot be read as a workbook; save it as CSV") from error
    for name, sheet in sheets.items():
        yield 0, [str(name)]
        for number, row in enumerate(sheet.fillna("").to_numpy().tolist(), 1):
            yield number, [one.strip() for one in row]


def _heads(rows: list[Row]) -> tuple[list[Head], list[Row]]:
    """Return the parsed column headers of a table, and the rows below the header lines."""
    width = max(len(fields) for _, fields in rows)
    (_, texts), *below = [(line, fields + [""] * (width - len(fields))) for line, fields in rows]
    while below and not any(map(_is_value, below[0][1])):
        if "" in texts[1:]:  # A merged field holds for those on its right.
            texts = pd.Series(texts).replace("", None).ffill().fillna("").tolist()
        pairs = zip(texts, below.pop(0)[1], strict=True)
        texts = [": ".join(filter(None, pair)) for pair in pairs]
    # A corner names rows and columns: `GPUs \\ batch`.
    first, *heads = [head(text.split("\\")[0]) for text in texts]
    if below and PATTERNS["in_words"].search(below[0][1][0]):
        first = first._replace(field="recipe")
    elif first.field not in IDENTITY and any(one.batch for one in heads):
        first = first._replace(field="gpus")
    return [first, *heads], below


def _is_value(text: str) -> bool:
    """Return whether a field is a value (a number, "out of memory"), not part of a header."""
    digits = re.search(r"\d", text) and not head(text).field
    return bool(digits or count(text) or named("statuses", text.lower()))


def _add(tables: Tables, caption: str, above: str, heads: list[Head], rows: list[Row]) -> None:
    """Add the records of a table; UserError if it lacks GPUs, batch sizes or values."""
    names = ", ".join(f"`{one.text}`" for one in heads[:8] if one.text)
    fields = {one.field for one in heads} | {"gpus" for one in heads if one.gpus}
    fields |= {"batch_size" for one in heads if one.batch}
    if "gpus" not in fields and not (rows and PATTERNS["in_words"].search(rows[0][1][0])):
        raise UserError(f"there is no column of GPUs among {names}")
    if not fields & {"batch_size", "global_batch"}:
        raise UserError(f"there is no column of batch sizes among {names}")
    columns, twice = _single(_quantities(heads, fields, head(caption)), rows)
    if not columns:
        raise UserError(twice or f"nothing says what the figures of {names} are")
    tables.heads += heads
    others = {j: one for j, one in enumerate(heads) if j not in columns}
    keys = {one.field: j for j, one in others.items() if one.field in IDENTITY}
    unread = [(j, one.text) for j, one in others.items() if one.field not in IDENTITY]
    skipped = [f"`{text}`" for j, text in unread if any(cells[j] for _, cells in rows)]
    tables.notes += filter(None, [twice, f"not checked: {', '.join(skipped)}" * bool(skipped)])
    if "batch_size" in keys:
        keys.pop("global_batch", None)
    about, epochs = Record(), any(one.text.lower() == "epoch" for one in heads)
    for line, cells in rows:
        # Merged fields of numbers hold for the rows below.
        given = {
            name: plain(cells[j]) or about.get(name, "") * (name in KEYS)
            for name, j in keys.items()
        }
        about = {"strategy": above, "status": "", "epochs": epochs, **given, "line": line}
        about["status"] = about["status"].lower()
        match = PATTERNS["in_words"].search(about.get("recipe", ""))
        if match and "gpus" not in about:
            about |= {"gpus": match[1], "recipe": about["recipe"].replace(match[0], "")}
        try:
            tables.records += _records(about, [(one, cells[j]) for j, one in columns.items()])
        except UserError as error:
            tables.notes.append(f"line {line}{error}; the row is left out")


def _quantities(heads: list[Head], fields: set[str], caption: Head) -> dict[int, Head]:
    """Return the headers of columns with values, by column index.

    If a header has only GPUs or a batch size, its quantity is that of `caption`.
    """
    columns = dict[int, Head]()
    timed = fields & {"epoch", "training", "total"}
    per_epoch = any(one.field == "epoch" and re.search("epoch|/ep", one.words) for one in heads)
    # A total beside a time per epoch is not read; beside another, that one is without loading.
    of = {"total": "epoch", "run": "run" if timed else "epoch"}
    of |= {"tokens": "" if timed or "rate" in fields else "rate"}
    if {"total", "epoch"} <= fields:
        of |= {"total": ""} if per_epoch else {"epoch": "training"}
    for j, one in enumerate(heads):
        one = one._replace(field=of.get(one.field, one.field))
        if (one.batch or one.gpus) and not one.words:
            if not caption.field or caption.field in IDENTITY:
                raise UserError(f"nothing says what the figures of `{one.text}` are")
            one = one._replace(field=caption.field, factor=caption.factor)
        if one.field and one.field not in IDENTITY:
            columns[j] = one
    return columns


def _single(columns: dict[int, Head], rows: list[Row]) -> tuple[dict[int, Head], str]:
    """Return one column for each quantity, and a text that names columns left out, or "".

    Of several columns, a mean or median is preferred; a numbered one (`Epoch 2`) comes last. If
    another column contradicts the preferred one, both are left out.
    """

    def differ(x: Figure | None, y: Figure | None) -> bool:
        return x != y and not (x and y and 2 * abs(x.value - y.value) < x.unit + y.unit)

    kept, unclear, each = dict[int, Head](), list[str](), defaultdict[Any, list[int]](list)
    for j, one in columns.items():
        each[one.field, one.gpus, one.batch].append(j)
    for places in each.values():
        kinds = ("average", "epoch", "plain")
        ranked = ([j for j in places if PATTERNS[x].search(columns[j].words)] for x in kinds)
        best, *others = next(filter(None, ranked), places)
        values = {j: [figure(plain(x[j]), columns[j]) for _, x in rows] for j in (best, *others)}
        if others := [j for j in others if any(map(differ, values[best], values[j]))]:
            unclear.append(f"`{columns[best].text}` and `{columns[others[0]].text}`")
        else:
            kept[best] = columns[best]
    return kept, f"{', '.join(unclear)} differ, so neither is read: leave one" * bool(unclear)


def _records(about: Record, cells: list[tuple[Head, str]]) -> list[Record]:
    """Return the records of a row, one for each number of GPUs and batch size in the headers."""
    records = dict[Any, Record]()
    for one, written in cells:
        record, text = records.setdefault((one.gpus, one.batch), {**about}), plain(written)
        record |= {"gpus": one.gpus} if one.gpus else {}
        record |= {"batch_size": one.batch} if one.batch else {}
        value = figure(text, one)
        if value and (one.field not in POSITIVE or 1e-7 < value.value < 1e12):
            record[one.field] = value
            record |= {"percent": value} if re.search("%|percent", one.words) else {}
        elif status := named("statuses", text.lower()):
            record["status"] = status
        elif value or not re.fullmatch(WORDS["missing"], text.lower()):
            readable = "above 0" if value and value.value <= 0 else "that can be read"
            reason = f"{text!r} is no {one.field} {readable}"
            raise UserError(f", column {one.text}: {reason}")
    for record in records.values():
        for name in KEYS.keys() & record.keys():
            if not (number := count(str(record[name]))):
                raise UserError(f": {str(record[name])!r} is no number of {KEYS[name]}")
            record[name] = number
    return [one for one in records.values() if one["status"] or {*one} - {*about, *KEYS}]
