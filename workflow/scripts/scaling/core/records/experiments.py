"""Schemas of the records of machine checks, sweeps, peaks, synchronization and quantization."""

from collections.abc import Iterator
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


class RankEpoch(TypedDict):
    """Base class of a rank's measurements in one epoch; epochs count from 0."""

    epoch: types.Whole
    rank: types.Whole


class Order(RankEpoch):
    """Images that a rank draws in an epoch, with fields of `synchronization.worker.orders_of`."""

    samples: types.Positive
    order_sha256: str
    overlap: types.Whole | None
    unseen: types.Whole
    repeated: types.Whole


class StepMessage(TypedDict):
    """One message of a training step; step 0 is before training. `bytes` sums over all tensors."""

    step: types.Whole
    phase: Literal["start", "forward", "backward", "update"]
    kind: str
    dtype: str
    elements: types.Whole
    bytes: types.Whole


class Steps(TypedDict):
    """Messages of recorded training steps; `way` names a strategy or a variant of it."""

    way: str
    bucket_bytes: list[types.Whole]
    ranks_agree: bool
    messages: list[StepMessage]


class SharedEpoch(RankEpoch):
    """A rank's training time, loss and accuracy in one epoch."""

    seconds: types.Seconds
    loader_seconds: types.Duration | None
    iterations: types.Positive
    samples: types.Positive
    train_loss: types.Amount | None
    train_accuracy: types.Fraction | None


class Ended(TypedDict):
    """Test metrics of a rank's model after training, and hashes of its parameters and buffers."""

    rank: types.Whole
    test_loss: types.Amount | None
    test_accuracy: types.Fraction
    parameters_sha256: str
    buffers_sha256: str


Drift = Literal["variance_max", "variance_mean", "mean_max", "mean_mean"]
"""Range over ranks of batch norm's running variance (in older records, also running mean)."""


class Shared(TypedDict):
    """A training whose ranks are compared: orders of images, metrics, and drift of buffers."""

    buffers: Literal["broadcast", "local", "sync_batch_norm"]
    set_epoch: bool
    seed: types.Whole
    epochs: Annotated[list[SharedEpoch], Len(1)]
    orders: Annotated[list[Order], Len(1)]
    ranks: Annotated[list[Ended], Len(1)]
    drift: dict[Drift, types.Amount | None]


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
    """Orders of samplers outside trainings, before version 8.2."""
    steps: list[Steps]
    trainings: list[Shared]
    seconds: types.Seconds


Exactness = Annotated[dict[Literal["logits", "differing"], types.Whole], Len(2, 2)]
"""Numbers of logits computed in integers and in floats, and of differing ones (before 8.2)."""
Classes = Annotated[dict[Literal["labels", "float32", "variant"], str], Len(3, 3)]
"""Class indices of all test images, encoded as text by `core.paired_accuracy.encode`."""
Counts = Annotated[dict[Literal["bin_edges", "counts"], list[types.Number]], Len(2, 2)]
"""A histogram: number of values between consecutive bin edges, in the float network's units."""


class Accuracy(TypedDict):
    """Accuracy of a quantized network, and its paired difference from the float network's."""

    accuracy_percent: types.Percent
    difference_points: types.Number
    agreement_percent: types.Percent
    test_images: types.Positive
    standard_error_points: types.Amount
    gained: types.Whole
    lost: types.Whole


class SeedRecord(types.Record):
    """Base class of a quantized network's record: seed, dataset, and device."""

    seed: types.Whole
    dataset: types.Images
    device: str
    calibration_images: types.Whole


@types.opened
class Options(TypedDict):
    """Options of a quantized variant, as in `config.scheme.Scheme`."""

    mistakes: list[str]


@types.opened
class Entrance(TypedDict):
    """Quantization of input images: `scale` (levels per unit) and range."""

    scale: types.Amount
    range: types.Pair


@types.opened
class Layer(TypedDict):
    """One layer of a quantized network. Output fields are absent if only weights are quantized."""

    layer: str
    weight_bits: types.Positive
    weight_range: types.Pair
    packed_bytes: types.Positive
    float32_bytes: types.Positive
    output_range: NotRequired[types.Pair]
    # What tells a mistake.
    bias_error_steps: NotRequired[types.Amount]
    top_step: NotRequired[types.Amount | None]


class Histogram(TypedDict):
    """Distributions of one quantity of a layer before (`float`) and after (`int8`) quantization."""

    layer: str
    quantity: str
    scale: types.Amount
    float: Counts
    int8: Counts


class VariantRecord(Accuracy, SeedRecord):
    """Record of one quantized variant of a tutorial CNN, `quantization.json`."""

    variant: str
    scheme: Options
    float32: dict[Literal["accuracy_percent"], types.Percent]
    classes: Classes
    calibration_checksum: str | None
    training_checksum: str
    packed_bytes: types.Positive
    float32_bytes: types.Positive
    exactness: NotRequired[Exactness | None]
    input: Entrance | None
    layers: Annotated[list[Layer], Len(1)]
    histograms: NotRequired[list[Histogram]]


def _repeats(record: types.Row) -> Iterator[str]:
    """Yield a sentence if operations have different numbers of repeats."""
    if len({len(row["seconds"]) for row in record["rows"]}) > 1:
        yield "rows have different numbers of repeats"


def _ranks(record: types.Row) -> Iterator[str]:
    """Yield a sentence for each impossible rank or epoch, and for each duplicate order."""
    for one in record["trainings"]:
        ranks, epochs = range(record["gpus"]), range(len(one["orders"]))
        rows = [*one["orders"], *one.get("epochs", []), *one.get("ranks", [])]
        if any(row["rank"] not in ranks or row.get("epoch", 0) not in epochs for row in rows):
            yield f"a rank or an epoch of seed {one['seed']} cannot be"
        places = [(row["epoch"], row["rank"]) for row in one["orders"]]
        if len({*places}) < len(places):
            yield f"an order of seed {one['seed']} is there twice"


CHECK = types.Kind("the check of a machine", MachineCheck)
SWEEP = types.Kind("a sweep", Sweep, _repeats)
PEAKS = types.Kind("peaks", Peaks, _repeats)
SYNCHRONIZATION = types.Kind("rank synchronization", Synchronization, _ranks)
VARIANT = types.Kind("a quantized network", VariantRecord)
