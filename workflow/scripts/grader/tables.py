"""Read the tables of a file into records, one for each configuration, with its printed values."""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import pandas as pd

from grader.words import IDENTITY, WORDS, Figure, Head, count, figure, head, named, plain, unclear
from scaling.core import files
from scaling.core.errors import UserError

MOST_BYTES, MOST_COLUMNS = 4_000_000, 1000
TEMPLATE = "write columns gpus, batch_size and epoch_seconds, as in studies/template.csv"
KEYS = {"gpus": "GPUs", "batch_size": "images", "global_batch": "images"}
POSITIVE = {"epoch", "training", "rate", "least", "most"}
ABOUT = IDENTITY | {"line", "epochs"}
JUDGED_BY = {"epoch", "training", "rate", "communication"}
"""Quantities of which a file needs at least one, as nothing can be derived without them."""
IN_WORDS = re.compile(r",? (\d+) GPUs?$")
Record = dict[str, Any]
"""A configuration: its `line`, names and numbers as text, printed values as `Figure`."""
Row = tuple[int, list[str]]
"""The number of a line, and its fields."""


@dataclass
class Tables:
    """Records, headers and text of a file; `notes` on tables, rows and columns not read."""

    records: list[Record] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    heads: list[Head] = field(default_factory=list)
    text: str = ""


def read(path: Path) -> Tables:
    """Return the tables of a file; UserError in one line if it has no readable table."""
    files.regular(path, MOST_BYTES, within=path.parent)
    tables, text, above, header = Tables(), list[str](), "", (0, list[str]())
    rows = _sheets(path) if path.suffix.lower() == ".xlsx" else _lines(path)
    for is_table, group in groupby(rows, key=lambda row: sum(map(bool, row[1])) > 1):
        lines = list(group)
        fields = lines[0][1]
        if any(map(str.isdecimal, fields)) and fields[0] and len(fields) == len(header[1]):
            lines = [header, *lines]  # The table goes on below an empty line.
        if not is_table or len(lines) == 1:
            text += [" ".join(fields).strip() for _, fields in lines if any(fields)]
            header = (0, []) if text else header
            continue
        tables.text += "\n".join([*text, ""])
        above = next(filter(None, (named("strategies", x) for x in reversed(text))), above)
        try:
            _add(tables, text[-1] if text else "", lines, above)
        except UserError as error:
            tables.notes.append(f"line {lines[0][0]}: {error}")
        text, header = [], lines[0]
    tables.text += "\n".join(text)
    if not any(one["status"] or one.keys() & JUDGED_BY for one in tables.records):
        why = "; ".join(tables.notes[:3]) or "there is no table of times"
        raise UserError(f"{path}: {why}; {TEMPLATE}")
    return tables


def _lines(path: Path) -> Iterator[Row]:
    """Yield the lines of a text file as fields: Markdown, or CSV with any separator."""
    lines = _decoded(path).splitlines() or [""]
    markdown = path.suffix == ".md" or any(line.lstrip().startswith("|") for line in lines)
    separator = "|" if markdown else max("\t;,", key=lambda x: _most_alike(x, lines))
    if stated := re.fullmatch(r'(?i)"?sep=(.)"?', lines[0]):
        separator, lines[0] = stated[1], ""
    table = "\n".join(line for line in lines if separator in line)
    commas = separator == ";" or re.search(r"\b0,\d|\d,(?!\d{3}(?!\d))\d", table)
    if separator != "," and commas and not re.search(r"\d\.\d", table):
        in_table = partial(re.sub, r"(?<=\d),(?=\d)", ".")
        lines = [in_table(line) if separator in line else line for line in lines]
    if markdown:
        for number, line in enumerate(lines, 1):
            if not ("|" in line and re.fullmatch(r"[|:+=\s-]*-[|:+=\s-]*", line)):
                yield number, [x.strip() for x in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        return
    try:
        rows = list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
    except csv.Error:
        rows = []
    if len(rows) < len(lines):
        at = next((n for n, line in enumerate(lines, 1) if line.count('"') % 2), 1)
        raise UserError(f"{path}, line {at}: a quote is not closed; close its quotes")
    for number, row in enumerate(rows, 1):
        if len(row) > MOST_COLUMNS:
            raise UserError(f"{path}, line {number}: more than {MOST_COLUMNS:,} columns")
        yield number, [one.strip() for one in row]


def _most_alike(separator: str, lines: list[str]) -> int:
    """Return how many lines have the commonest number of separators."""
    counts = Counter(line.count(separator) for line in lines if separator in line)
    return max(counts.values(), default=0)


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
        about: Any = {"header": None, "dtype": str, "na_filter": False, "nrows": 20_000}
        sheets = pd.read_excel(path, sheet_name=None, **about)
    except (ValueError, KeyError, OSError, BadZipFile) as error:
        raise UserError(f"{path} cannot be read as a workbook; save it as CSV") from error
    for name, sheet in sheets.items():
        yield 0, [str(name)]
        for number, row in enumerate(sheet.to_numpy().tolist(), 1):
            yield number, [one.strip() for one in row]


def _heads(rows: list[Row]) -> tuple[list[Head], list[Row]]:
    """Return the meaning of each column, by its header (one or more lines), and the rows below."""
    width = max(len(fields) for _, fields in rows)
    (_, texts), *below = [(line, fields + [""] * (width - len(fields))) for line, fields in rows]
    while below and not any(map(_is_value, below[0][1])):
        if "" in texts[1:]:  # A merged field holds for those on its right.
            texts = pd.Series(texts).replace("", None).ffill().fillna("").tolist()
        pairs = zip(texts, below.pop(0)[1], strict=True)
        texts = [": ".join(filter(None, pair)) for pair in pairs]
    # A corner names rows and columns: `GPUs \\ batch`.
    heads = [head(text.split("\\")[0]) for text in texts]
    if below and IN_WORDS.search(below[0][1][0]):
        # The corner names the numbers of the other headers: `images per GPU`.
        heads[0] = heads[0]._replace(field="recipe")
    bare = [j for j in range(1, width) if heads[j].text.split(":")[0].isdecimal()]
    across = bare or {"batch_size", "global_batch"} & _fields(heads)
    unnamed = heads[0].field not in IDENTITY and "gpus" not in _fields(heads)
    if across and unnamed and any(count(fields[0]) for _, fields in below):
        heads[0] = heads[0]._replace(field="gpus")
    if heads[0].field == "recipe" or "gpus" in _fields(heads):
        for j in bare:
            number = int(heads[j].text.split(":")[0])
            heads[j] = heads[j]._replace(batch=heads[j].batch or number)
    return heads, below


def _is_value(text: str) -> bool:
    """Return whether a field is a value, not part of a header: a number or "out of memory"."""
    digits = re.search(r"\d", text) and not head(text).field
    return bool(digits or count(text) or named("statuses", text))


def _fields(heads: list[Head]) -> set[str]:
    """Return the fields of headers, GPUs and batch sizes beside a quantity included."""
    beside = {"gpus": [one.gpus for one in heads], "batch_size": [one.batch for one in heads]}
    return {one.field for one in heads} | {name for name, each in beside.items() if any(each)}


def _add(tables: Tables, caption: str, lines: list[Row], above: str) -> None:
    """Add the records of a table; UserError if rows, GPUs, batch sizes or values are missing."""
    heads, rows = _heads(lines)
    names = ", ".join(f"`{one.text}`" for one in heads[:8] if one.text)
    # A configuration may have them: `plain/ddp, 2 GPUs`.
    within = heads[0].field == "recipe" and all(IN_WORDS.search(cells[0]) for _, cells in rows)
    if not within and "gpus" not in _fields(heads):
        raise UserError(f"there is no column of GPUs among {names}")
    if not _fields(heads) & {"batch_size", "global_batch"}:
        raise UserError(f"there is no column of batch sizes among {names}")
    columns = _quantities(heads, head(caption))
    if not columns:
        raise UserError(f"nothing says what the figures of {names} are")
    tables.heads += heads
    others = [(j, one) for j, one in enumerate(heads) if (j not in dict(columns))]
    skipped = [
        f"`{x.text}`" for j, x in others if x.field not in IDENTITY and any(y[j] for _, y in rows)
    ]
    tables.notes += [f"not checked: {', '.join(skipped)}"] * bool(skipped)
    keys = {one.field: j for j, one in others if one.field in IDENTITY}
    if "batch_size" in keys:
        keys.pop("global_batch", None)
    epochs = any(one.text.lower() == "epoch" for one in heads)
    about: Record = {}
    for line, cells in rows:
        given = {
            name: plain(cells[j]) or str(about.get(name, "") if name in KEYS else "")
            for name, j in keys.items()
        }
        about = {"line": line, "strategy": above, "epochs": epochs, "status": "", **given}
        about["status"] = about["status"].lower()
        if "gpus" not in about and (match := IN_WORDS.search(about.get("recipe", ""))):
            about |= {"gpus": match[1], "recipe": about["recipe"].replace(match[0], "")}
        try:
            tables.records += _records(about, [(one, cells[j]) for j, one in columns])
        except UserError as error:
            tables.notes.append(f"line {line}{error}; the row is left out")


def _quantities(heads: list[Head], caption: Head) -> list[tuple[int, Head]]:
    """Return index and header of each column of values, of several for one quantity the first."""
    fields, columns, known = _fields(heads), list[tuple[int, Head]](), set[Any]()
    timed = fields & {"epoch", "training", "total"}
    per_epoch = any(one.field == "epoch" and re.search("epoch|/ep", one.words) for one in heads)
    # A total beside a time per epoch is not read; beside another, that one is without loading.
    of = {"total": "epoch", "run": "run" if timed else "epoch"}
    of |= {"tokens": "" if timed or "rate" in fields else "rate"}
    if {"total", "epoch"} <= fields:
        of |= {"total": ""} if per_epoch else {"epoch": "training"}
    for j, one in enumerate(heads):
        one = one._replace(field=of.get(one.field, one.field))
        if (one.batch or one.gpus) and (not one.words or one.words.isdecimal()):
            if not caption.field or caption.field in IDENTITY:
                raise UserError(f"nothing says what the figures of `{one.text}` are")
            one = one._replace(field=caption.field, factor=caption.factor)
        key = one.field, one.gpus, one.batch
        if one.field and one.field not in IDENTITY and key not in known:
            if unclear(one):
                raise UserError(
                    f"`{one.text}` may be minutes or a minimum; write (min) for minutes"
                )
            columns.append((j, one))
        known.add(key)
    return columns


def _records(about: Record, cells: list[tuple[Head, str]]) -> list[Record]:
    """Return a row's records, one for each number of GPUs and batch size in its headers."""
    records = dict[Any, Record]()
    for one, written in cells:
        record, text = records.setdefault((one.gpus, one.batch), {**about}), plain(written)
        record |= {"gpus": one.gpus} if one.gpus else {}
        record |= {"batch_size": one.batch} if one.batch else {}
        value = figure(text, one)
        if value is None and re.fullmatch(WORDS["missing"], text.lower()):
            continue
        if value is None or (one.field in POSITIVE and not 1e-7 < value.value < 1e12):
            if not (status := named("statuses", text)):
                reason = f"{text!r} is no {one.field} that can be read"
                raise UserError(f", column {one.text}: {reason}")
            record["status"] = status
            continue
        record[one.field] = value
    for record in records.values():
        for name in KEYS.keys() & record.keys():
            if not (number := count(str(record[name]))):
                raise UserError(f": {str(record[name])!r} is no number of {KEYS[name]}")
            record[name] = number
        rate = next((one for one, _ in cells if one.field == "rate"), None)
        if rate and "rate" in record and re.search("(?:per |/ ?)gpu", rate.words):
            record["rate"] = Figure(*(record["gpus"] * one for one in record["rate"]))
    return [one for one in records.values() if one.keys() - ABOUT or one["status"]]
