"""CSV files that people write by hand: a typed model for a row of each, checked field by field."""

import csv
import math
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from scaling.core.errors import UserError
from scaling.core.records import Status

MOST_GPUS = 10**6
LARGEST_COUNT = 10**12
"""Times `MOST_GPUS`, a global batch still is a 64-bit integer."""
SHORTEST_SECONDS, LONGEST_SECONDS = 1e-6, 1e9
LARGEST_FIGURE, MOST_DECIMALS = Decimal("1e15"), 30
"""What a document may print: where floats still tell its last digit from 0 and from infinity."""


def _number(field: str) -> Decimal | None:
    """Convert a field to the number with the digits it was written with; empty is None."""
    try:
        value = Decimal(field) if field else None
    except InvalidOperation as error:
        raise ValueError("no number") from error
    if value is not None and not math.isfinite(float(value)):
        raise ValueError("not finite")
    return value


def _printable(value: Decimal | None) -> Decimal | None:
    if value is not None:
        power = int(value.as_tuple().exponent)
        if abs(value) > LARGEST_FIGURE or not -MOST_DECIMALS <= power <= LARGEST_FIGURE.adjusted():
            raise ValueError("its last digit is lost in a float")
    return value


def _path_part(field: str) -> str:
    if not field or field.startswith(".") or not all(c.isalnum() or c in "._-" for c in field):
        raise ValueError("no part of a path")
    return field


def _nan_for_none(value: float | None) -> float:
    return math.nan if value is None else value


Number = BeforeValidator(_number)
Name = Annotated[
    str, AfterValidator(_path_part), Field(description="a name of letters, digits, '.', '_', '-'")
]
Gpus = Annotated[
    int,
    *(Number, Field(ge=1, le=MOST_GPUS, description=f"a number of GPUs, 1 to {MOST_GPUS:,}")),
]
Count = Annotated[
    int,
    *(Number, Field(ge=1, le=LARGEST_COUNT, description=f"a whole number, 1 to {LARGEST_COUNT:,}")),
]
MaybeCount = Annotated[
    Annotated[int, Field(ge=1, le=LARGEST_COUNT)] | None,
    *(Number, Field(description=f"a whole number, 1 to {LARGEST_COUNT:,}, or empty")),
]
Seconds = Annotated[
    Annotated[float, Field(ge=SHORTEST_SECONDS, le=LONGEST_SECONDS)] | None,
    *(Number, AfterValidator(_nan_for_none)),
    Field(description="the seconds of an epoch, 0.000001 to 1,000,000,000, or empty"),
]
"""A time; NaN where the field is empty."""
Figure = Annotated[
    Decimal | None,
    *(Number, AfterValidator(_printable)),
    Field(
        description=f"a number below 10^{LARGEST_FIGURE.adjusted()} with at most {MOST_DECIMALS} "
        "decimals, or empty"
    ),
]
"""A printed figure with its digits; None where the field is empty."""


class Row(BaseModel):
    """A row of a table on one study; other columns of the file are passed over."""

    model_config = ConfigDict(extra="ignore", str_strip_whitespace=True, frozen=True)
    study: Name


class Timing(Row):
    """A row of timings.csv. A study may leave out `count` and the range of its epochs' seconds."""

    gpus: Gpus
    batch_size: Count
    strategy: Annotated[Literal["dp", "ddp"], Field(description="one of dp, ddp")]
    model: Name
    parameters: MaybeCount
    status: Annotated[Status, Field(description=f"one of {', '.join(get_args(Status))}")]
    epoch_seconds: Seconds
    epoch_seconds_without_loading: Seconds
    printed_speedup: Figure
    printed_compute_seconds: Figure
    printed_communication_seconds: Figure
    printed_bandwidth_gb_per_s: Figure
    printed_utilization_percent: Figure
    count: MaybeCount = None
    epoch_seconds_min: Seconds = math.nan
    epoch_seconds_max: Seconds = math.nan


class Sweep(Row):
    """A row of batch_sweep.csv: one more time on one GPU."""

    gpus: Annotated[int, Number, Field(ge=1, le=1, description="1, as these are times on one GPU")]
    batch_size: Count
    epoch_seconds: Seconds


class Accuracy(Row):
    """A row of accuracy.csv: loss and accuracy on the training set after an epoch."""

    gpus: Gpus
    batch_size: Count
    strategy: Name
    epoch: Count
    train_loss: Figure
    train_accuracy: Figure


class Quantization(Row):
    """A row of quantization.csv: the accuracy of a stage, and where the document prints it."""

    stage: str
    accuracy_percent: Figure
    where: str


def read_rows(path: Path, model: type[Row]) -> Iterator[dict[str, Any]]:
    """Yield every row of the CSV file at `path` as fields of `model`, and its number as `line`.

    Raises UserError, which names file, line and column, when the file is no CSV, a column is
    missing, a row has too few or too many fields, or a field is not what it should be.
    """
    try:
        # utf-8-sig: spreadsheets put a byte order mark before the first column's name.
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            header = reader.fieldnames or []
            for name, field in model.model_fields.items():
                if field.is_required() and name not in header:
                    raise UserError(_no_column(path, name, header))
            for row in reader:
                line = reader.line_num
                if None in row or None in row.values():
                    raise UserError(
                        f"{path}, line {line}: the line has not as many fields as the first one; "
                        "count its commas"
                    )
                yield {"line": line, **_checked(path, line, model, row)}
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; make it, or name another folder") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(
            f"{path} cannot be read as a CSV table ({error}); save it as one"
        ) from error


def _no_column(path: Path, missing: str, header: Sequence[str]) -> str:
    for mark, name in ((";", "semicolons"), ("\t", "tabs")):
        if len(header) == 1 and mark in header[0]:
            return f"{path}, line 1: the columns are separated by {name}; separate them by commas"
    return f"{path}, line 1: there is no column {missing}; add it"


def _checked(path: Path, line: int, model: type[Row], row: dict[str, str]) -> dict[str, Any]:
    try:
        return model.model_validate(row).model_dump()
    except ValidationError as error:
        column = str(error.errors()[0]["loc"][0])
        wanted = model.model_fields[column].description
        raise UserError(
            f"{path}, line {line}, column {column}: {row[column]!r} should be {wanted}"
        ) from error
