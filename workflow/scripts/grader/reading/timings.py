"""The studies of a file of times, whatever its columns are called, and how they were read."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import ValidationError

from grader import rows as models
from grader.reading.grids import check_width, grids, records
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
    (_, header), *lines = records(path)[1] or [(1, list[str]())]
    names = list(map(str.lower, header))
    required = [name for name, field in model.model_fields.items() if field.is_required()]
    if lacks := [name for name in required if name not in names]:
        raise UserError(f"{path}, line 1: there is no column {', '.join(lacks)}; add it")
    for line, fields in lines:
        if any(fields):
            check_width(path, line, fields, names)
            pairs = zip(names, fields, strict=True)
            yield _checked(path, model, {x: Cell(f, f, line, x, label("")) for x, f in pairs})


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
        known = {*table.keys, *(field for row in rows for field in row)}
        if lacks := [words for words, fields in NEEDED.items() if not fields & known]:
            there = ", ".join(f"`{one.text[:40]}`" for one in table.labels[:12] if one.text)
            passed.append(f"{table.where}: there is no column of {', '.join(lacks)} among {there}")
            continue
        ours = ours and table.ours
        passed += [f"`{text}`" for text in table.passed]
        for row in rows:
            row.setdefault("study", Cell(name, name, 0, "", label("")))
        for study in dict.fromkeys(row["study"].plain for row in rows):
            _add(found, study, [row for row in rows if row["study"].plain == study])
    if not found:
        raise UserError(f"{passed[0]}; add what is missing")
    return {
        study: (_frame(path, study, rows, images), "" if ours else _words(rows, passed))
        for study, rows in found.items()
    }


def _add(found: dict[str, list[Row]], study: str, rows: list[Row]) -> None:
    """Add the cells of a table to a study, or to a new one where they contradict it."""
    for name in [study, *(f"{study}-{number}" for number in range(2, 1000))]:
        known = {_key(row): row for row in found.get(name, [])}
        pairs = [(row, known.get(_key(row), row)) for row in rows]
        if all(
            a[f].plain == b[f].plain for a, b in pairs for f in a.keys() & b.keys() & {*FIGURES}
        ):
            break
    for row, other in pairs:
        if other is row:
            found.setdefault(name, []).append(row)
        else:
            other |= row


def _key(row: Row) -> tuple[str, ...]:
    return tuple(row[field].plain if field in row else "" for field in KEY)


def _checked(path: Path, model: type[models.Row], cells: Row) -> dict[str, Any]:
    line = max(cell.line for cell in cells.values())
    try:
        texts = {field: cell.plain for field, cell in cells.items()}
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
        batch, gpus = row.get("batch_size"), row.get("gpus")
        if batch and gpus and batch.label.whole and (batch.plain + gpus.plain).isdecimal():
            each = Decimal(batch.plain) / (Decimal(gpus.plain) or 1)
            row |= {
                "batch_size": batch._replace(plain=f"{each:f}", text=f"{batch.text} / {gpus.text}")
            }
        values = _checked(path, models.Timing, row) | {"study": study}
        for field in row.keys() & {*FIGURES}:
            one, value = row[field].label, values[field]
            factor = one.factor or Decimal(1)
            if value and one.field == "throughput":
                factor = images / (value * (values["gpus"] if one.per_gpu else 1)) / value
            values[field] = value and _converted(value, factor)
        found.append(values)
    return pd.DataFrame(found, columns=["line", *models.Timing.model_fields])


def _converted(value: Decimal, factor: Decimal) -> Decimal:
    """`value` times `factor`, with no digit that it has not."""
    unit = factor.scaleb(int(value.as_tuple().exponent))
    exact = factor.normalize().as_tuple().digits == (1,)
    return value * factor if exact else round(value * factor, -unit.adjusted() - 1)


def _words(rows: list[Row], passed: list[str]) -> str:
    """Which words of the tables were taken for what, what is not there and what was not read."""
    parts = list[str]()
    for field in [*IDENTITY, *FIGURES]:
        cells = [row[field] for row in rows if field in row and row[field].source]
        parts += [f"{said(field)} = {_source(field, cells)}"] if cells else []
    lacks = [said(f) for f in ("strategy", "model") if not any(f in row for row in rows)]
    parts += [f"not stated: {', '.join(lacks)}"] if lacks else []
    parts += [f"not read: {', '.join(dict.fromkeys(passed))}"] if passed else []
    return "; ".join(parts)


def _source(field: str, cells: list[Cell]) -> str:
    one, sources = cells[0].label, {cell.source: cell for cell in cells}
    text = f"`{cells[0].source}`" + (" etc." if len(sources) > 1 else "")
    if field == "batch_size":
        return f"{text}, of all GPUs" if one.whole else f"{text}, per GPU"
    if one.field == "throughput":
        return f"images / {text}" + (" of each GPU" if one.per_gpu else "")
    text += f" x {one.factor}" if field in FIGURES and one.factor not in (None, 1) else ""
    return f"{text}, the shorter time" if field == WITHOUT and one.field == "time" else text
