"""Read tables of any layout into records, one for each configuration, with its printed values."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.grids import Grid, Row, grids
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
TEMPLATE = "write columns gpus, batch_size and epoch_seconds, as in studies/template.csv"
KEYS = {"gpus": "GPUs", "batch_size": "images", "global_batch": "images"}
POSITIVE = {"epoch", "training", "rate", "least", "most"}
ABOUT = IDENTITY | {"line", "table", "per_gpu", "question_1", "epochs"}
JUDGED_BY = {"epoch", "training", "rate", "tokens", "communication"}
"""Quantities of which a file needs at least one, as nothing can be derived without them."""
ONE_GPU = re.compile(r"\b(?:1|one|single)[ -]gpu\b|\bq(?:uestion ?)?1\b")
IN_WORDS = re.compile(r",? (\d+) GPUs?$")
NO_FIGURE = re.compile(r"^loading.*%|below ")
"""Matches what is not read as a figure: a share of loading, and an upper bound."""
Record = dict[str, Any]
"""A configuration: its `line`, names and numbers as text, printed values as `Figure`."""


@dataclass
class Tables:
    """Records and headers of a file's tables, `lost` rows, `skipped` columns, `refused` tables."""

    records: list[Record] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    heads: list[Head] = field(default_factory=list)
    text: str = ""


def read(path: Path) -> Tables:
    """Return the tables of a file; UserError in one line if it has no readable table."""
    tables, above = Tables(), ""
    for grid in grids(path):
        tables.text += "\n".join([*grid.text, ""])
        for line in grid.text:
            above = strategy(line) or above
        if grid.rows:
            try:
                _add(tables, grid, above)
            except UserError as error:
                tables.refused.append(f"line {grid.rows[0][0]}: {error}")
    if not any(one["status"] or one.keys() & JUDGED_BY for one in tables.records):
        why = "; ".join((tables.refused or tables.lost)[:3]) or "there is no table of times"
        raise UserError(f"{path}: {why}; {TEMPLATE}")
    return tables


def _heads(grid: Grid) -> tuple[list[Head], list[Row]]:
    """Return the meaning of each column, by its header (one or more lines), and the rows below."""
    width = max(len(fields) for _, fields in grid.rows)
    rows = [(line, fields + [""] * (width - len(fields))) for line, fields in grid.rows]
    (_, texts), *below = rows
    filled = [next(filter(None, texts[j::-1]), "") for j in range(width)]
    while below and not any(_is_value(one) for one in below[0][1]):
        pairs = zip(filled if "" in texts[1:] else texts, below.pop(0)[1], strict=True)
        texts = [f"{a}: {b}" if a and b else a or b for a, b in pairs]
    # A corner names rows and columns: `GPUs \\ batch`.
    heads = [head(text.split("\\")[0]) for text in texts]
    numbers = [one.text.split(":")[0] for one in heads]
    if below and IN_WORDS.search(below[0][1][0]):
        # The corner names the numbers of the other headers: `images per GPU`.
        heads[0] = heads[0]._replace(field="recipe")
    across = any(one.batch for one in heads) or any(map(str.isdecimal, numbers[1:]))
    across = across or bool(_fields(heads) & {"batch_size", "global_batch"})
    named = heads[0].field in IDENTITY or "gpus" in _fields(heads)
    if across and not named and any(count(fields[0]) for _, fields in below):
        heads[0] = heads[0]._replace(field="gpus")
    if "gpus" in _fields(heads) or heads[0].field == "recipe":
        for j, number in enumerate(numbers):
            if j and number.isdecimal() and not heads[j].batch:
                heads[j] = heads[j]._replace(batch=int(number))
    return heads, below


def _is_value(text: str) -> bool:
    """Return whether a field is a value, not part of a header: a number or "out of memory"."""
    digits = re.search(r"\d", text) and not head(text).field
    return bool(digits or count(text) or OUT.fullmatch(text))


def _fields(heads: list[Head]) -> set[str]:
    return {one.field for one in heads} | {"gpus" for one in heads if one.gpus}


def _shared(heads: list[Head], rows: list[Row], grid: Grid, names: str) -> Record:
    """Return the entries common to all rows; UserError without rows, GPUs or batch sizes."""
    fields, shared = _fields(heads), Record()
    if not rows:
        raise UserError("there is no row below the header")
    # A configuration may have them: `plain/ddp, 2 GPUs`.
    within = heads[0].field == "recipe" and all(IN_WORDS.search(cells[0]) for _, cells in rows)
    if "gpus" not in fields and not within:
        if not any(ONE_GPU.search(text.lower()) for text in grid.text):
            raise UserError(f"there is no column of GPUs among {names}")
        shared = {"gpus": "1", "question_1": True}
    if not (any(one.batch for one in heads) or fields & {"batch_size", "global_batch"}):
        raise UserError(f"there is no column of batch sizes among {names}")
    epochs = any(one.text.lower() == "epoch" for one in heads)
    return shared | {"table": rows[0][0], "epochs": epochs, "status": ""}


def _add(tables: Tables, grid: Grid, above: str) -> None:
    """Add the records of a table; UserError if rows, GPUs, batch sizes or values are missing."""
    heads, rows = _heads(grid)
    caption = head(grid.text[-1]) if grid.text else head("")
    names = ", ".join(f"`{one.text}`" for one in heads[:8] if one.text)
    shared = _shared(heads, rows, grid, names)
    columns = _quantities(heads, caption, rows, tables)
    if not columns:
        raise UserError(f"nothing says what the figures of {names} are")
    tables.heads += heads
    others = [(j, one) for j, one in enumerate(heads) if j not in dict(columns)]
    keys = {one.field: j for j, one in reversed(others) if one.field in IDENTITY}
    if "batch_size" in keys:
        keys.pop("global_batch", None)
    before, comma = (
        dict[str, str](),
        _decimal_comma(plain(x[j]) for _, x in rows for j, _ in columns),
    )
    for line, cells in rows:
        about: Record = {"line": line, "strategy": above, **shared}
        for name, j in keys.items():
            repeated = before.get(name, "") if name in KEYS else ""
            before[name] = about[name] = plain(cells[j]) or repeated
        about["status"] = about["status"].lower()
        if "gpus" not in about and (match := IN_WORDS.search(about.get("recipe", ""))):
            about |= {"gpus": match[1], "recipe": about["recipe"].replace(match[0], "")}
        try:
            tables.records += _records(about, [(one, cells[j]) for j, one in columns], comma)
        except UserError as error:
            tables.lost.append(f"line {line}{error}; the row is left out")


def _decimal_comma(texts: Iterable[str]) -> bool:
    """Return whether commas are decimal: one cannot separate thousands, and there is no point."""
    texts = [*texts]
    commas = [one for one in texts if re.fullmatch(r"[-−]?\d+,\d+\D*", one)]
    sure = [one for one in commas if not re.fullmatch(r"[-−]?[1-9]\d{0,2},\d{3}\D*", one)]
    return bool(sure) and not any(re.search(r"\d\.\d", one) for one in texts)


def _quantities(
    heads: list[Head], caption: Head, rows: list[Row], tables: Tables
) -> list[tuple[int, Head]]:
    """Return index and header of each column of values; other columns go to `tables.skipped`."""
    columns, known = list[tuple[int, Head]](), set[Any]()
    timed = {"epoch", "training"} & _fields(heads)
    times = [one for one in heads if one.field == "epoch" and not (one.batch or one.gpus)]
    total = [one for one in times if re.search("total|wall", one.words)]
    pair = len(times) == 2 and len(total) == 1
    # A total beside a time per epoch is not read; beside another, that one is without loading.
    per_epoch = pair and any(re.search("epoch|/ep", one.words) for one in times)
    for j, one in enumerate(heads):
        if one.field == "?":
            raise UserError(f"`{one.text}` may be minutes or the minimum; say which")
        if pair and one in times and per_epoch == (one in total):
            one = one._replace(field="" if per_epoch else "training")
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
            tables.skipped.append(f"`{one.text}`")
        known.add(key)
    return columns


def _records(about: Record, cells: list[tuple[Head, str]], comma: bool) -> list[Record]:
    """Return a row's records, one for each number of GPUs and batch size in its headers."""
    records = dict[Any, Record]()
    fields = [one.field for one, _ in cells]
    for one, written in cells:
        prefix, _, rest = one.text.partition(": ")
        apart, text = Record(), plain(written)
        if rest and fields.count(one.field) > 1 and not (one.gpus or one.batch):
            apart = {"strategy" if strategy(prefix) else "recipe": prefix}
        record = records.setdefault((one.gpus, one.batch, *apart.values()), {**about, **apart})
        record |= {"gpus": one.gpus} if one.gpus else {}
        record |= {"batch_size": one.batch} if one.batch else {}
        if status := "oom" if OUT.fullmatch(text) else STATUSES.get(text.lower()):
            record["status"] = status
        elif text.lower() not in MISSING and not NO_FIGURE.search(one.field + text):
            value = figure(text, one, comma)
            if value is None or (one.field in POSITIVE and not 1e-7 < value.value < 1e12):
                reason = f"{text!r} is no {one.field} that can be read"
                raise UserError(f", column {one.text}: {reason}")
            if one.field == "rate" and re.search("(?:per |/ ?)gpu", one.words):
                record["per_gpu"] = True
            record["tokens" if one.words.startswith("tok") else one.field] = value
    for record in records.values():
        for name in KEYS.keys() & record.keys():
            if not count(str(record[name])):
                raise UserError(f": {str(record[name])!r} is no number of {KEYS[name]}")
    return [one for one in records.values() if one.keys() - ABOUT or one["status"]]
