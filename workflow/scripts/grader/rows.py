"""CSV files that people write by hand: a typed model for a row of each, checked field by field."""

import csv
import stat
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from scaling.core.errors import UserError
from scaling.core.records.fields import Status


def _digits(value: Decimal | None) -> Decimal | None:
    """Refuse what floats do not tell from its neighbours, 0 or infinity by its last digit."""
    if value is None:
        return None
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or not -30 <= exponent <= 15 or value.copy_abs() > 1e15:
        raise ValueError("Input should be below 10^15 and have at most 30 decimals")
    return value


MOST_BYTES = 10 * 10**6
MOST_ROWS = 100_000
"""Of a file that is read: a study has a few dozen rows."""
Empty = BeforeValidator(lambda field: field or None)
Name = Annotated[str, Field(pattern=r"^[\w-][\w.-]*$")]
"""Letters, digits, ".", "_" and "-": a part of a path."""
Gpus = Annotated[int, Field(ge=1, le=10**6)]
Count = Annotated[int, Field(ge=1, le=10**12)]
MaybeCount = Annotated[Count | None, Empty]
Seconds = Annotated[
    Annotated[Decimal, Field(ge=Decimal("1e-6"), le=10**9)] | None, Empty, AfterValidator(_digits)
]
"""A time with its digits; None where the field is empty."""
Figure = Annotated[Decimal | None, Empty, AfterValidator(_digits)]
"""A printed figure with its digits; None where the field is empty."""


class Row(BaseModel):
    """A row of a table on one study; other columns of the file are passed over."""

    model_config = ConfigDict(extra="ignore", str_strip_whitespace=True, frozen=True)
    study: Name


class Timing(Row):
    """A row of timings.csv. A study may leave out `count` and the range of its epochs' seconds."""

    gpus: Gpus
    batch_size: Count
    strategy: Literal["dp", "ddp"]
    model: Name
    parameters: MaybeCount
    status: Status
    epoch_seconds: Seconds
    epoch_seconds_without_loading: Seconds
    printed_speedup: Figure
    printed_compute_seconds: Figure
    printed_communication_seconds: Figure
    printed_bandwidth_gb_per_s: Figure
    printed_utilization_percent: Figure
    count: MaybeCount = None
    epoch_seconds_min: Seconds = None
    epoch_seconds_max: Seconds = None


class Sweep(Row):
    """A row of batch_sweep.csv: one more time on one GPU."""

    gpus: Annotated[int, Field(ge=1, le=1)]
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
    lines = read_text(path).splitlines(keepends=True)
    if len(lines) > MOST_ROWS:
        raise UserError(f"{path}: there are more than {MOST_ROWS:,} lines; hand in fewer")
    reader = csv.reader(lines)
    try:
        header = [name.strip() for name in next(reader, [])]
        for name, field in model.model_fields.items():
            if field.is_required() and name not in header:
                raise UserError(
                    f"{path}, line 1: there is no column {name} (columns are separated by "
                    "commas); add it"
                )
        for fields in reader:
            where = f"{path}, line {reader.line_num}"
            if not any(field.strip() for field in fields):
                continue
            if len(fields) != len(header):
                raise UserError(
                    f"{where}: the line has not as many fields as the first one; count its commas"
                )
            row = dict(zip(header, map(str.strip, fields), strict=True))
            yield {"line": reader.line_num, **model.model_validate(row).model_dump()}
    except ValidationError as error:
        wrong = error.errors()[0]
        column = str(wrong["loc"][0])
        raise UserError(f"{where}, column {column}: {row[column]!r}: {wrong['msg']}") from error
    except csv.Error as error:
        raise UserError(
            f"{path} cannot be read as a CSV table ({error}); save it as one"
        ) from error


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """The text of a file that somebody handed in, without a byte order mark.

    Raises UserError for what is no regular file of UTF-8 text within its folder and `most` bytes:
    what a link leads to elsewhere is not theirs, and nobody writes the other end of a pipe.
    """
    try:
        if not path.resolve(strict=True).is_relative_to(path.parent.resolve()):
            raise UserError(f"{path} is a link out of its folder; hand in the file itself")
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UserError(f"{path} is no regular file; hand in a file")
        if status.st_size > most:
            raise UserError(f"{path} has more than {most / 1e6:g} MB; hand in the times")
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; make it, or name another folder") from error
    except (OSError, RuntimeError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}); save it as UTF-8 text") from error
