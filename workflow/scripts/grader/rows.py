"""CSV files that people write by hand: a typed model for a row of each, checked field by field."""

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from scaling.core import files
from scaling.core.errors import UserError
from scaling.core.records.kind import Status


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
Lower = BeforeValidator(str.lower)
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


NOT_STATED: Literal["not stated"] = "not stated"


class Timing(Row):
    """A row of timings.csv. `status` is None where a table has no such column."""

    gpus: Gpus
    batch_size: Count
    strategy: Annotated[Literal["dp", "ddp", "not stated"], Lower] = NOT_STATED
    model: Name = NOT_STATED
    parameters: MaybeCount = None
    status: Annotated[Status | None, Lower] = None
    epoch_seconds: Seconds = None
    epoch_seconds_without_loading: Seconds = None
    printed_speedup: Figure = None
    printed_compute_seconds: Figure = None
    printed_communication_seconds: Figure = None
    printed_bandwidth_gb_per_s: Figure = None
    printed_utilization_percent: Figure = None
    printed_images_per_second: Figure = None
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


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return what is in a file that somebody handed in; UserError as `files.regular`."""
    try:
        return files.regular(path, most, linked=False).read_bytes()
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}); save it as UTF-8 text") from error


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """Return the text of a file, without a byte order mark: UTF-8, UTF-16, or Windows' Latin-1.

    Raises UserError as `read_bytes` does, and for what is no text.
    """
    data = read_bytes(path, most)
    codec = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    for choice in (codec, "cp1252"):
        try:
            text = data.decode(choice)
        except UnicodeError:
            continue
        if "\0" not in text:
            return text
    raise UserError(f"{path} cannot be read as text; save it as UTF-8 text")
