"""Read the studies in a file of times, whatever its columns are called."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import ValidationError

from grader import fields as models
from grader.fields import Timing
from grader.grids import check_width, grids, records
from grader.tables import FIGURES, IDENTITY, Row, Table, said
from scaling.core.errors import UserError

NEEDED = {"GPUs": {"gpus"}, "batch size": {"batch_size"}, "time or speedup": {*FIGURES}}
KEY = ["strategy", "gpus", "batch_size"]
OPTIONAL = {"count", "epoch_seconds_min", "epoch_seconds_max", "printed_images_per_second"}
OURS = {*Timing.model_fields} - OPTIONAL
"""The columns of timings.csv: a table that begins with all of them is not interpreted."""


def read_rows(path: Path, model: type[models.Row]) -> Iterator[dict[str, Any]]:
    """Yield every row of the table at `path` as fields of `model`, and its number as `line`.

    Raises UserError, which names file, line and column, for what is not as it should be.
    """
    separator, lines = records(path)
    (_, header), *lines = [one for one in lines if any(one[1])] or [(1, list[str]())]
    names, fields_of = list(map(str.lower, header)), model.model_fields
    if lacks := [name for name in fields_of if fields_of[name].is_required() and name not in names]:
        raise UserError(f"{path}, line 1: there is no column {', '.join(lacks)}; add it")
    for line, fields in lines:
        check_width(path, line, fields, names)
        texts = [field.replace(",", ".") for field in fields] if separator == ";" else fields
        yield _checked(path, model, dict(zip(names, texts, strict=False)) | {"line": str(line)})


def read_timings(path: Path, name: str, images: int) -> dict[str, tuple[pd.DataFrame, str]]:
    """Return the rows of each study in the file at `path`, and in words how they were read.

    A table that goes on with the cells of the one before is a part of its study. `name` is that of
    a study that states none; a rate of `images` becomes the time of an epoch. The words are empty
    for a file of exactly our columns.
    """
    tables = grids(path)
    if not tables:
        raise UserError(f"{path} has no row of a table; write one for each cell of the study")
    if {text.lower() for text in tables[0].header[0]} >= OURS and tables[0].separator != "sheet":
        rows = pd.DataFrame(read_rows(path, Timing))
        return {str(study): (same, "") for study, same in rows.groupby("study", sort=False)}
    found, passed = dict[str, list[Row]](), list[str]()
    sources = dict[str, dict[str, str]]()
    for table in (Table(path, grid, images) for grid in tables):
        texts = table.rows()
        known = {field for row in texts for field in row} | {*table.keys}
        if lacks := [words for words, fields in NEEDED.items() if not fields & known]:
            there = ", ".join(f"`{one.text[:40]}`" for one in table.labels[:12] if one.text)
            passed.append(f"{table.where}: there is no column of {', '.join(lacks)} among {there}")
            continue
        passed += [f"`{text}`" for text in table.passed]
        for field, words, note in table.sources():
            sources.setdefault(field, {}).setdefault(words, note)
        for study in dict.fromkeys(row.setdefault("study", name) for row in texts):
            _add(found, study, [row for row in texts if row["study"] == study])
    if not found:
        raise UserError(f"{passed[0]}; add what is missing")
    heads = {field: next(iter(words)) for field, words in sources.items()}
    columns = ["line", *Timing.model_fields]
    return {
        study: (
            pd.DataFrame(
                [_checked(path, Timing, row, heads) | {"study": study} for row in rows],
                columns=columns,
            ),
            _words(sources, passed),
        )
        for study, rows in found.items()
    }


def _add(found: dict[str, list[Row]], study: str, rows: list[Row]) -> None:
    """Add a table's rows to a study, or to a new study if they contradict it."""

    def key(row: Row) -> tuple[str, ...]:
        return tuple(row.get(field, "") for field in KEY)

    for name in [study, *(f"{study}-{number}" for number in range(2, 1000))]:
        known = {key(row): row for row in found.get(name, [])}
        pairs = [(row, known.get(key(row), row)) for row in rows]
        if all(a[f] == b[f] for a, b in pairs for f in a.keys() & b.keys() & {*FIGURES}):
            break
    for row, other in pairs:
        if other is row:
            found.setdefault(name, []).append(row)
        else:
            other |= row | {"line": other["line"]}


def _checked(
    path: Path, model: type[models.Row], row: Row, heads: dict[str, str] | None = None
) -> dict[str, Any]:
    try:
        return {"line": int(row["line"]), **model.model_validate(row).model_dump()}
    except ValidationError as error:
        wrong = error.errors()[0]
        column = str(wrong["loc"][0])
        where = f"{path}, line {row['line']}"
        if column not in row:
            raise UserError(f"{where}: there is no {said(column)}; write it") from error
        head = (heads or {}).get(column, column)
        raise UserError(f"{where}, column {head}: {row[column]!r}: {wrong['msg']}") from error


def _words(sources: dict[str, dict[str, str]], passed: list[str]) -> str:
    """Return in words how headers were understood, what is missing and what was ignored."""
    parts = [
        f"{said(field)} = `{words}`{' etc.' if len(sources[field]) > 1 else ''}{note}"
        for field in [*IDENTITY, *FIGURES]
        for words, note in list(sources.get(field, {}).items())[:1]
    ]
    lacks = ", ".join(name for name in ("strategy", "model") if name not in sources)
    parts += [f"not stated: {lacks}"] if lacks else []
    parts += [f"not read: {', '.join(dict.fromkeys(passed))}"] if passed else []
    return "; ".join(parts)
