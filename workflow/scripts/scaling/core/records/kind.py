"""Read and write records: JSON files with a schema. Module `run` has the schemas of trainings."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

from annotated_types import Ge, Interval, Len
from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from scaling.core import files
from scaling.core.errors import UserError
from scaling.core.section import sentence

VERSION = 1
MOST_BYTES = 5_000_000

closed = with_config(ConfigDict(strict=True, allow_inf_nan=False, extra="forbid"))
"""Decorator of a schema. The schema, its subclasses and nested schemas reject unknown keys."""
opened = with_config(ConfigDict(strict=True, allow_inf_nan=False, extra="allow"))
"""Decorator of a schema that allows unknown keys."""

Row = dict[str, Any]
Whole = Annotated[int, Interval(ge=0, lt=2**63)]
Positive = Annotated[int, Interval(ge=1, lt=2**63)]
Number = Annotated[float, Interval(ge=-1e39, le=1e39)]
"""A number from -1e39 to 1e39. This includes every finite float32, and figures can show it."""
Amount = Annotated[Number, Ge(0)]
Seconds = Annotated[float, Interval(ge=1e-9, le=1e9)]
Duration = Annotated[float, Interval(ge=0, le=1e9)]
"""Seconds, at least 0."""
Repeats = Annotated[list[Seconds], Len(1)]
"""Seconds of each repeat. The list is not empty."""
Fraction = Annotated[float, Interval(ge=0, le=1)]
Percent = Annotated[float, Interval(ge=0, le=100)]
Status = Literal["ok", "oom", "oom_host", "infeasible", "diverged", "timeout"]
Role = Literal["warmup", "measured"]


@closed
class Record(TypedDict):
    """Fields of all records. Schemas that inherit from this one also reject unknown keys."""

    environment: Row
    """Result of `core.environment.describe`: hosts, devices, versions, times."""


class Images(TypedDict):
    """The dataset of a measurement: its name (`source`) and its SHA-256 (`checksum`)."""

    source: str
    checksum: str


class Counted(Images):
    """The dataset of a measurement, with its numbers of training and test images."""

    train_images: Positive
    test_images: Positive


class Dataset(Counted):
    """The dataset of a measurement: its numbers of images and their shape [height, width, 3]."""

    image_shape: Annotated[list[Positive], Len(3, 3)]


@closed
class Manifest(Dataset):
    """Record of a dataset, `manifest.json`. `…_counts` list the number of images of each class."""

    origin: str
    classes: Annotated[list[str], Len(2)]
    train_counts: list[Whole]
    test_counts: list[Whole]
    mean: Annotated[list[Fraction], Len(3, 3)]
    std: Annotated[list[Fraction], Len(3, 3)]


@closed
class OwnData(TypedDict):
    """The dataset of a user's own command. Only the manifest has `origin`, not records of runs."""

    source: Literal["own"]
    origin: NotRequired[str]


Device = Literal["cpu", "cuda"]
VARIANT_PATTERN = "variant~{variant}/quantization.json"
"""Path of a quantized variant's record, relative to the folder of the seed."""


class Finding(TypedDict):
    """A problem found by a machine check; `gpu` is a UUID, or "" for a problem of the host."""

    severity: Literal["bad", "odd"]
    host: str
    gpu: str
    message: str


class MachineCheck(Record):
    """Record of the check of machines before a study, `check.json`."""

    check: str
    hosts: list[Row]
    gpus: list[Row]
    """State of each GPU, from `instruments.machine.run`. The report does not show it."""
    findings: list[Finding]


class Message(TypedDict):
    """Repeated timings of a collective operation, such as an all-reduce, at one message size."""

    kind: Literal["sweep", "bucket", "tuned_bucket", "gradients", "broadcast", "reduce"]
    message_bytes: Positive
    seconds: Repeats
    correct: bool
    """Whether the operation computed the right values in every repeat."""
    launch: Literal["graph", "eager"]
    start_skew_seconds: NotRequired[list[Duration]]


class Sweep(Record):
    """Record of a sweep, `sweep.json`: times of collectives by kind and message size."""

    gpus: Positive
    backend: str
    device: Device
    gradient_bytes: Positive
    rows: list[Message]


class Peak(TypedDict):
    """Seconds of each repeat of one operation. `quantity` determines which other fields exist."""

    quantity: Literal["matrix_product", "device_copy", "gpu_to_gpu_copy"]
    seconds: Repeats
    precision: NotRequired[str]
    matrix_size: NotRequired[Positive]
    state: NotRequired[Literal["sprint", "sustained"]]
    copy_bytes: NotRequired[Positive]
    source_gpu: NotRequired[Whole]
    target_gpu: NotRequired[Whole]


class Peaks(Record):
    """Record of the peak rates of a machine, `peaks.json`; `gpus` is 0 on a CPU."""

    device: Device
    gpus: Whole
    cpu_threads: Positive
    rows: list[Peak]


class Synchronization(Record):
    """Record of the synchronization experiments, `synchronization.json`."""

    gpus: Positive
    device: Device
    backend: str
    train_images: Positive
    parameters: Row
    model: Annotated[dict[str, Whole], Len(3, 3)]
    """Keys `parameter_bytes`, `buffer_bytes`, `widest_norm` (channels of the widest batch norm)."""
    steps: list[Row]
    """A row per strategy, with the messages of some training steps. Step 0 is before training."""
    trainings: list[Row]
    """A row per training: metrics and image orders of all ranks, and differences of buffers."""
    seconds: Seconds


class VariantRecord(Record):
    """Record of one quantized variant of a tutorial CNN, `quantization.json`."""

    variant: str
    seed: Whole
    dataset: Images
    device: str
    calibration_images: Whole
    calibration_checksum: str | None
    training_checksum: str
    scheme: Row
    """Options of the variant (`config.scheme.Scheme`)."""
    float32: dict[Literal["accuracy_percent"], Percent]
    accuracy_percent: Percent
    difference_points: Number
    """The variant's accuracy minus the float network's accuracy, in percentage points."""
    standard_error_points: Amount
    agreement_percent: Percent
    gained: Whole
    lost: Whole
    test_images: Positive
    classes: Annotated[dict[Literal["labels", "float32", "variant"], str], Len(3, 3)]
    """Class indices of all test images, encoded as text by `core.paired_accuracy.encode`."""
    packed_bytes: Positive
    float32_bytes: Positive
    input: Row | None
    """`scale` (levels per unit) and `range` of input images; null if activations are floats."""
    layers: Annotated[list[Row], Len(1)]
    """Bits, value ranges, size in bytes and errors of each layer (`quantization.variant`)."""
    histograms: NotRequired[list[Row]]
    """Distributions of each layer's values before (`float`) and after (`int8`) quantization."""


@dataclass(frozen=True)
class Kind:
    """A kind of record: its name in messages (`what`) and the schema of its records."""

    what: str
    schema: Any

    def read(self, path: Path) -> Row:
        """Return the record at `path`; raise UserError if it is missing, damaged or invalid."""
        record = unsigned(path)
        if reason := self._wrong(record, path):
            raise UserError(
                f"{path}: invalid record of {self.what} ({reason[:300]}): {files.to_do(path)}"
            )
        return record

    def write(self, path: Path, record: Any) -> None:
        """Write `record` with version and checksum; raise UserError if `record` is invalid."""
        if reason := self._wrong(record, path):
            raise UserError(f"refusing to write {path}: invalid record of {self.what} ({reason})")
        content = record | {"version": VERSION}
        files.write_json(path, content | {"sha256": _checksum(content)})

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.schema)

    def _wrong(self, record: Any, path: Path) -> str | None:
        """Return the first error in a record as text; None if there is no error."""
        try:
            self._adapter.validate_json(json.dumps(record))
        except ValidationError as error:
            return sentence(error.errors()[0])
        return next(_misplaced(record, path), None)


def unsigned(path: Path) -> dict[str, Any]:
    """Return the record at `path` without its checksum and version; do not check its schema.

    Raise UserError if checksum or version is wrong.
    """
    record = files.read_json(path, MOST_BYTES)
    if not isinstance(record, dict) or record.pop("sha256", None) != _checksum(record):
        raise UserError(f"{path}: checksum mismatch: {files.to_do(path)}")
    if record.pop("version", None) != VERSION:
        raise UserError(f"{path} has another version than {VERSION}: read it by newer code")
    return record


def _misplaced(record: dict[str, Any], path: Path) -> Iterator[str]:
    """Yield a phrase for each folder of `path`, such as `gpus~2`, that the record contradicts."""
    fields = record | record.get("cell", {})
    values = dict(part.split("~", 1) for part in path.parts if "~" in part)
    if "seed" in values and fields.get("repeat"):
        values.setdefault("repeat", "0")
    for key, value in values.items():
        if key in fields and str(fields[key]) != value:
            yield f"its {key} is {fields[key]}, that of its folder {value}"


def _checksum(record: dict[str, Any]) -> str:
    """Return the SHA-256 of a record's content. The order of its keys does not matter."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


DATASET = Kind("a dataset", Manifest | OwnData)
CHECK = Kind("the check of a machine", MachineCheck)
SWEEP = Kind("a sweep", Sweep)
PEAKS = Kind("peaks", Peaks)
SYNCHRONIZATION = Kind("rank synchronization", Synchronization)
VARIANT = Kind("a quantized network", VariantRecord)
