"""Read tables as people have them, to a record for each cell: what it is of, and its figures."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.grids import TEMPLATE, Grid, Row, grids
from grader.words import (
    IDENTITY,
    MISSING,
    OUT,
    STATUSES,
    Head,
    count,
    figure,
    head,
    plain,
    strategy,
)
from scaling.core.errors import UserError

KINDS = [".csv", ".tsv", ".txt", ".md", ".markdown", ".xlsx"]
"""Endings of files that may hold a table."""
KEYS = {"gpus": "GPUs", "batch_size": "images", "global_batch": "images"}
POSITIVE = {"epoch", "training", "rate", "least", "most"}
ABOUT = IDENTITY | {"line", "table", "per_gpu", "question_1", "epochs"}
JUDGED_BY = {"epoch", "training", "rate", "tokens", "communication", "status"}
"""One of these a file has, or nothing follows from it."""
ONE_GPU = re.compile(r"\b(?:1|one|single)[ -]gpu\b|\bq(?:uestion ?)?1\b")
Record = dict[str, Any]
"""A cell: its `line`, names and numbers as text, figures as `Figure`."""


@dataclass
class Tables:
    """All tables of a file: records, and in words what was not read and what a table states."""

    records: list[Record] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    heads: list[Head] = field(default_factory=list)
    text: str = ""


def read(path: Path) -> Tables:
    """Return the records of a file; UserError with one line where it has no table that is read."""
    found, why = Tables(), list[str]()
    above = {"strategy": ""}
    for grid in grids(path):
        found.text += "\n".join([*grid.text, ""])
        for line in grid.text:
            above["strategy"] = strategy(line) or above["strategy"]
        if grid.rows:
            try:
                _add(found, grid, above["strategy"])
            except UserError as error:
                why.append(f"line {grid.rows[0][0]}: {error}")
    if not any(one.keys() & JUDGED_BY for one in found.records):
        said = why[0] if why else "; ".join(found.lost[:3]) or "there is no table of times"
        raise UserError(f"{path}: {said}; {TEMPLATE}")
    found.refused = why
    return found


def _heads(grid: Grid) -> tuple[list[Head], list[Row]]:
    """Return what each column is, by one header line or two merged ones, and the rows below."""
    width = max(len(fields) for _, fields in grid.rows)
    rows = [(line, fields + [""] * (width - len(fields))) for line, fields in grid.rows]
    (_, texts), *below = rows
    filled = [next(filter(None, texts[j::-1]), "") for j in range(width)]
    while below and not any(_value(one) for one in below[0][1]):
        pairs = zip(filled if "" in texts[1:] else texts, below.pop(0)[1], strict=True)
        texts = [f"{a}: {b}" if a and b else a or b for a, b in pairs]
    # A corner names rows and columns: `GPUs \\ batch`.
    heads = [head(text.split("\\")[0]) for text in texts]
    numbers = [one.text.split(":")[0] for one in heads]
    across = any(one.batch for one in heads) or any(map(str.isdecimal, numbers[1:]))
    first = [count(fields[0]) for _, fields in below]
    across = across or bool(_fields(heads) & {"batch_size", "global_batch"})
    named = heads[0].field in IDENTITY or "gpus" in _fields(heads)
    if across and any(first) and not named:
        heads[0] = heads[0]._replace(field="gpus")
    if "gpus" in _fields(heads):
        for j, number in enumerate(numbers):
            if j and number.isdecimal() and not heads[j].batch:
                heads[j] = heads[j]._replace(batch=int(number))
    return heads, below


def _value(text: str) -> bool:
    """Whether a field is no part of a header: a number, or a cell that ran out of memory."""
    digits = re.search(r"\d", text) and not head(text).field
    return bool(digits or count(text) or OUT.fullmatch(text))


def _fields(heads: list[Head]) -> set[str]:
    return {one.field for one in heads} | {"gpus" for one in heads if one.gpus}


def _add(found: Tables, grid: Grid, above: str) -> None:
    """Add the records of a table; UserError in words where it is not one of times or figures."""
    heads, rows = _heads(grid)
    caption = head(grid.text[-1]) if grid.text else head("")
    fields, fixed = _fields(heads), Record()
    names = ", ".join(f"`{one.text}`" for one in heads[:8] if one.text)
    if not rows:
        raise UserError("there is no row below the header")
    if fields & {"per_node", "nodes"}:
        raise UserError("GPUs stand as nodes and GPUs per node; write the GPUs of all nodes")
    if "gpus" not in fields:
        if not any(ONE_GPU.search(text.lower()) for text in grid.text):
            raise UserError(f"there is no column of GPUs among {names}")
        fixed = {"gpus": "1", "question_1": True}
    if not (any(one.batch for one in heads) or fields & {"batch_size", "global_batch"}):
        raise UserError(f"there is no column of batch sizes among {names}")
    columns = _quantities(heads, caption, rows, found)
    if not columns:
        raise UserError(f"nothing says what the figures of {names} are")
    found.heads += heads
    comma = _decimal_comma(rows, columns)
    keys = {one.field: j for j, one in reversed([*enumerate(heads)]) if one.field in IDENTITY}
    if "batch_size" in keys:
        keys.pop("global_batch", None)
    fixed |= {"epochs": True} if any(one.text.lower() == "epoch" for one in heads) else {}
    before = dict[str, str]()
    for line, cells in rows:
        about: Record = {"line": line, "strategy": above, "table": rows[0][0], **fixed}
        for name, j in keys.items():
            repeated = before.get(name, "") if name in KEYS else ""
            before[name] = about[name] = plain(cells[j]) or repeated
        _fill(found, about, [(one, cells[j]) for j, one in columns], comma)


def _quantities(
    heads: list[Head], caption: Head, rows: list[Row], found: Tables
) -> list[tuple[int, Head]]:
    """Return the columns of figures with their quantities; the names of others are passed over."""
    columns, known = list[tuple[int, Head]](), set[Any]()
    timed = {"epoch", "training"} & _fields(heads)
    for j, one in enumerate(_two_times(heads)):
        if one.field == "?":
            raise UserError(f"`{one.text}` may be minutes or the minimum; say which")
        if one.field == "run" and not timed:
            one = one._replace(field="epoch")
        if one.field == "rate" and "tok" in one.words and timed:
            one = one._replace(field="")
        if (one.batch or one.gpus) and (not one.words or one.words.isdecimal()):
            if not caption.field or caption.field in IDENTITY:
                raise UserError(f"nothing says what the figures of `{one.text}` are")
            one = one._replace(field=caption.field, factor=caption.factor)
        if one.field in IDENTITY or not (one.field or any(cells[j] for _, cells in rows)):
            continue
        key = one.field, one.gpus, one.batch, one.text.rpartition(": ")[0]
        if one.field and key not in known:
            columns.append((j, one))
        else:
            found.passed.append(f"`{one.text}`")
        known.add(key)
    return columns


def _two_times(heads: list[Head]) -> list[Head]:
    """Two columns of times: a total beside one per epoch is not read, else the other one is
    without loading."""
    times = [one for one in heads if one.field == "epoch" and not (one.batch or one.gpus)]
    total = [one for one in times if re.search("total|wall", one.words)]
    if len(times) != 2 or len(total) != 1:
        return heads
    per_epoch = any(re.search("epoch|/ep", one.words) for one in times)
    other = next(one for one in times if one is not total[0])
    changed, field = (total[0], "") if per_epoch else (other, "training")
    return [one._replace(field=field) if one is changed else one for one in heads]


def _decimal_comma(rows: list[Row], columns: list[tuple[int, Head]]) -> bool:
    """Whether numbers have a decimal comma: some can have no other, and none has a point."""
    texts = [plain(cells[j]) for _, cells in rows for j, _ in columns]
    commas = [text for text in texts if re.fullmatch(r"[-−]?\d+,\d+\D*", text)]
    sure = [text for text in commas if not re.fullmatch(r"[-−]?[1-9]\d{0,2},\d{3}\D*", text)]
    return bool(sure) and not any(re.search(r"\d\.\d", text) for text in texts)


def _fill(found: Tables, about: Record, cells: list[tuple[Head, str]], comma: bool) -> None:
    """Add a row's records, one for each GPUs and batch size that stand in its headers."""
    made, where = dict[Any, Record](), f"line {about['line']}"
    for one, written in cells:
        prefix, _, rest = one.text.partition(": ")
        apart, text = Record(), plain(written)
        twice = sum(other.field == one.field for other, _ in cells) > 1
        if rest and twice and not (one.gpus or one.batch):
            apart = {"strategy" if strategy(prefix) else "recipe": prefix}
        record = made.setdefault((one.gpus, one.batch, *apart.values()), {**about, **apart})
        record |= {"gpus": one.gpus} if one.gpus else {}
        record |= {"batch_size": one.batch} if one.batch else {}
        if status := "oom" if OUT.fullmatch(text) else STATUSES.get(text.lower()):
            record["status"] = status
        elif text.lower() not in MISSING and not (one.field == "loading" and "%" in text):
            value = figure(text, one, comma)
            if value is None or (one.field in POSITIVE and not 1e-7 < value.value < 1e12):
                said = f"{where}, column {one.text}: {text!r} is no {one.field} that can be read"
                found.lost.append(f"{said}; the row is left out")
                return
            per_gpu = one.field == "rate" and re.search("(?:per |/ ?)gpu", one.words)
            record |= {"per_gpu": True} if per_gpu else {}
            record["tokens" if one.words.startswith("tok") else one.field] = value
    for record in made.values():
        wrong = [name for name in KEYS if name in record and not count(str(record[name]))]
        if wrong:
            said = f"{str(record[wrong[0]])!r} is no number of {KEYS[wrong[0]]}"
            found.lost.append(f"{where}: {said}; the row is left out")
        elif record.keys() - ABOUT or "status" in record:
            found.records.append(record)
