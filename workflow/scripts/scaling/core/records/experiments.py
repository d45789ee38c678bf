"""Schemas of the records of machine checks, sweeps, peaks, synchronization and quantization."""

from typing import Annotated, Literal, NotRequired

from annotated_types import Len
from typing_extensions import TypedDict

from scaling.core.records import kind as types

Device = Literal["cpu", "cuda"]
VARIANT_PATTERN = "variant~{variant}/quantization.json"
"""Path of the record of a quantized variant, below the folder of its seed."""


class Finding(TypedDict):
    """A problem found by a machine check; `gpu` is a UUID, or "" for a problem of the host."""

    severity: Literal["bad", "odd"]
    host: str
    gpu: str
    message: str


class MachineCheck(types.Record):
    """Record of the check of machines before a study, `check.json`."""

    check: str
    hosts: list[types.Row]
    gpus: list[types.Row]
    """Readings of each GPU by `instruments.machine`, not shown in the report."""
    findings: list[Finding]


class Message(TypedDict):
    """Seconds of each repeat of one message, and whether all results were correct."""

    kind: Literal["sweep", "bucket", "tuned_bucket", "gradients", "broadcast", "reduce"]
    message_bytes: types.Positive
    seconds: types.Repeats
    correct: bool
    launch: Literal["graph", "eager"]
    start_skew_seconds: NotRequired[list[types.Duration]]


class Sweep(types.Record):
    """Record of a sweep, `sweep.json`: times of collectives by kind and message size."""

    gpus: types.Positive
    backend: str
    device: Device
    gradient_bytes: types.Positive
    rows: list[Message]


class Peak(TypedDict):
    """Seconds of each repeat of one operation. Optional fields depend on `quantity`."""

    quantity: Literal["matrix_product", "device_copy", "gpu_to_gpu_copy"]
    seconds: types.Repeats
    precision: NotRequired[str]
    matrix_size: NotRequired[types.Positive]
    state: NotRequired[Literal["sprint", "sustained"]]
    copy_bytes: NotRequired[types.Positive]
    source_gpu: NotRequired[types.Whole]
    target_gpu: NotRequired[types.Whole]


class Peaks(types.Record):
    """Record of the peak rates of a machine, `peaks.json`; `gpus` is 0 on a CPU."""

    device: Device
    gpus: types.Whole
    cpu_threads: types.Positive
    rows: list[Peak]


class Synchronization(types.Record):
    """Record of the synchronization experiments, `synchronization.json`."""

    gpus: types.Positive
    device: Device
    backend: str
    train_images: types.Positive
    parameters: types.Options
    model: Annotated[dict[str, types.Whole], Len(3, 3)]
    """Keys `parameter_bytes`, `buffer_bytes` and `widest_norm` (channels of the widest norm)."""
    permutations: NotRequired[list[types.Row]]
    """Only before version 9: image orders of samplers that ran outside a training."""
    steps: list[types.Row]
    """Messages of recorded training steps, by strategy; step 0 is before training."""
    trainings: list[types.Row]
    """Trainings with different seeds and buffers: metrics, orders, and drift of buffers."""
    seconds: types.Seconds


class VariantRecord(types.Record):
    """Record of one quantized variant of a tutorial CNN, `quantization.json`."""

    variant: str
    seed: types.Whole
    dataset: types.Images
    device: str
    calibration_images: types.Whole
    calibration_checksum: str | None
    training_checksum: str
    scheme: types.Options
    """Options of the variant (`config.scheme.Scheme`)."""
    float32: dict[Literal["accuracy_percent"], types.Percent]
    accuracy_percent: types.Percent
    difference_points: types.Number
    """Accuracy minus that of the float network, in percentage points."""
    standard_error_points: types.Amount
    agreement_percent: types.Percent
    gained: types.Whole
    lost: types.Whole
    test_images: types.Positive
    classes: Annotated[dict[Literal["labels", "float32", "variant"], str], Len(3, 3)]
    """Class indices of all test images, encoded as text by `core.paired_accuracy.encode`."""
    packed_bytes: types.Positive
    float32_bytes: types.Positive
    exactness: NotRequired[types.Row | None]
    """Only before version 9: how many logits were also computed in integers, how many differed."""
    input: types.Row | None
    """Quantization of input images: `scale` (levels per unit) and `range`."""
    layers: Annotated[list[types.Row], Len(1)]
    """Bits, ranges, bytes and errors of each layer (`quantization.variant`)."""
    histograms: NotRequired[list[types.Row]]
    """Distributions of each layer's values before (`float`) and after (`int8`) quantization."""


CHECK = types.Kind("the check of a machine", MachineCheck)
SWEEP = types.Kind("a sweep", Sweep)
PEAKS = types.Kind("peaks", Peaks)
SYNCHRONIZATION = types.Kind("rank synchronization", Synchronization)
VARIANT = types.Kind("a quantized network", VariantRecord)
