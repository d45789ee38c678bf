"""The studies of a file of times, whatever its columns are called, and how they were read."""

import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import ValidationError

from grader import rows as models
from grader.intervals import Converted
from grader.reading.grids import grids, records
from grader.reading.tables import FIGURES, IDENTITY, WITHOUT, Cell, Row, Table, said
from grader.reading.words import label
from scaling.core.errors import UserError

NEEDED = {"GPUs": {"gpus"}, "batch size": {"batch_size"}, "time or speedup": {*FIGURES}}
KEY = ["strategy", "gpus", "batch_size"]


def read_rows(path: Path, model: type[models.Row]) -> Iterator[dict[str, Any]]:
    """Yield every row of the table at `path` as fields of `model`, and its number as `line`.

    Raises UserError, which names file, line and column, when the file is no table, columns are
    missing, a row has too few or too many fields, or a field is not what it should be.
    """
    lines = iter(records(path)[1])
    header = [name.lower() for name in next(lines, (1, []))[1]]
    required = [name for name, field in model.model_fields.items() if field.is_required()]
    if lacks := [name for name in required if name not in header]:
        raise UserError(f"{path}, line 1: there is no column {', '.join(lacks)}; add it")
    for line, fields in lines:
        if not any(fields):
            continue
        if len(fields) != len(header):
            raise UserError(
                f"{path}, line {line}: the line has not as many fields as the first one; "
                "count its commas"
            )
        cells = {
            name: Cell(f, f, line, name, label("")) for name, f in zip(header, fields, strict=True)
        }
        yield _checked(path, model, cells)


def read_timings(path: Path, name: str, images: int) -> dict[str, tuple[pd.DataFrame, str]]:
    """The rows of each study in the file at `path`, and in words how they were read.

    A table that goes on with the cells of the one before is a part of its study. `name` is that of
    a study that states none; a rate of `images` becomes the time of an epoch. The words are empty
    for a file of exactly our columns.
    """
    found, passed, ours = dict[str, list[Row]](), list[str](), True
    tables = [Table(path, grid) for grid in grids(path)]
    if not tables:
        raise UserError(f"{path} has no row of a table; write one for each cell of the study")
    for table in tables:
        rows = table.rows()
        if lacks := [w for w, some in NEEDED.items() if not any(some & row.keys() for row in rows)]:
            names = ", ".join(f"`{one.text[:40]}`" for one in table.labels[:12] if one.text)
            passed.append(
                f"{table.where}: there is no {', '.join(lacks)} among {names or 'figures'}"
            )
            continue
        ours = ours and table.ours
        passed += [f"`{name}`" for name in table.passed]
        for study in dict.fromkeys(row["study"].plain if "study" in row else name for row in rows):
            own = [row for row in rows if "study" not in row or row["study"].plain == study]
            _add(found, study, own)
    if not found:
        raise UserError(f"{passed[0]}; add what is missing")
    return {
        study: (_frame(path, study, rows, images), "" if ours else _words(rows, passed))
        for study, rows in found.items()
    }


def _add(found: dict[str, list[Row]], name: str, rows: list[Row]) -> None:
    """Add cells to the study `name`, or to a new one where they contradict it."""
    first, number, before = name, 1, dict[tuple[str, ...], Row]()
    while part := found.get(name, []):
        before = {_key(row): row for row in part}
        pairs = [(row, before.get(_key(row), row)) for row in rows]
        if all(a[f].plain == b[f].plain for a, b in pairs for f in _shared(a, b)):
            break
        number, before = number + 1, {}
        name = f"{first}-{number}"
    known = dict(before)
    for row in rows:
        other = known.setdefault(_key(row), row)
        if other is not row and (_key(row) in before or not _shared(row, other)):
            other |= row
        else:
            found.setdefault(name, []).append(row)


def _key(row: Row) -> tuple[str, ...]:
    return tuple(row[field].plain if field in row else "" for field in KEY)


def _shared(row: Row, other: Row) -> set[str]:
    return row.keys() & other.keys() & {*FIGURES}


def _checked(path: Path, model: type[models.Row], cells: Row, study: str = "") -> dict[str, Any]:
    line = min(cell.line for cell in cells.values())
    try:
        texts = {"study": study} | {field: cell.plain for field, cell in cells.items()}
        return {"line": line, **model.model_validate(texts).model_dump()}
    except ValidationError as error:
        wrong = error.errors()[0]
        column = str(wrong["loc"][0])
        if column not in cells:
            raise UserError(f"{path}, line {line}: there is no {said(column)}; write it") from error
        text, _, line, source, _ = cells[column]
        raise UserError(
            f"{path}, line {line}, column {source}: {text!r}: {wrong['msg']}"
        ) from error


def _frame(path: Path, study: str, rows: list[Row], images: int) -> pd.DataFrame:
    found = []
    for row in rows:
        values = _checked(path, models.Timing, _of_each_gpu(path, row), study)
        gpus = values["gpus"]
        steps = math.ceil(images / (gpus * values["batch_size"]))
        for field in row.keys() & {*FIGURES}:
            one, value = row[field].label, values[field]
            if value and one.field == "throughput":
                rate = value * (gpus if one.per_gpu else 1)
                values[field] = Converted.of(
                    value, (steps if one.per_step else images) / rate / value
                )
            elif value:
                factor = (one.factor or 1) * (steps if one.per_step else 1)
                values[field] = Converted.of(value, Decimal(factor))
        found.append(values)
    return pd.DataFrame(found, columns=["line", *models.Timing.model_fields])


def _of_each_gpu(path: Path, row: Row) -> Row:
    """The row with the batch of each GPU, where a table has that of all of them."""
    batch, gpus = row.get("batch_size"), row.get("gpus")
    if not (batch and gpus and batch.label.whole and batch.plain.isdecimal()):
        return row
    each, rest = divmod(int(batch.plain), int(gpus.plain))
    if rest:
        raise UserError(
            f"{path}, line {batch.line}, column {batch.source}: {batch.text} images cannot be "
            f"shared by {gpus.text} GPUs; write the batch of each GPU"
        )
    return row | {"batch_size": batch._replace(plain=str(each))}


def _words(rows: list[Row], passed: list[str]) -> str:
    """Which words of the tables were taken for what, what is not there and what was not read."""
    parts = list[str]()
    for field in [*IDENTITY, *FIGURES]:
        cells = [row[field] for row in rows if field in row]
        parts += [f"{said(field)} = {_source(field, cells)}"] if cells else []
    lacks = [said(f) for f in ("strategy", "model") if not any(f in row for row in rows)]
    parts += [f"not stated: {', '.join(lacks)}"] if lacks else []
    parts += [f"not read: {', '.join(dict.fromkeys(passed))}"] if passed else []
    return "; ".join(parts)


def _source(field: str, cells: list[Cell]) -> str:
    one, sources = cells[0].label, list(dict.fromkeys(cell.source for cell in cells))
    text = f"`{sources[0]}`" + (" etc." if len(sources) > 1 else "")
    if field == "batch_size":
        return f"{text}, of all GPUs" if one.whole else f"{text}, per GPU"
    if one.field == "throughput":
        text = f"{'iterations' if one.per_step else 'images'} / {text}"
        return f"{text} of each GPU" if one.per_gpu else text
    text += f" x {one.factor}" if field in FIGURES and one.factor not in (None, 1) else ""
    text += " x iterations" if one.per_step else ""
    return f"{text}, the shorter time" if field == WITHOUT and one.field == "time" else text
