"""Records of a machine's limits, the synchronization experiments, and quantized networks."""

from collections.abc import Iterator
from typing import Annotated, Literal, NotRequired

from annotated_types import Len
from typing_extensions import TypedDict

from scaling.core.records import kind as types

Device = Literal["cpu", "cuda"]
VARIANT_PATTERN = "variant~{variant}/quantization.json"
"""The path of a variant's record below the folder of its seed."""


class Finding(TypedDict):
    """A problem with a host, or with one of its GPUs; `gpu` is a UUID, or "" for the host."""

    severity: Literal["bad", "odd"]
    host: str
    gpu: str
    message: str


class MachineCheck(types.Record):
    """The machine check before measuring, `check.json`."""

    check: str
    hosts: list[types.Row]
    gpus: list[types.Row]
    """The readings of `instruments.machine`; the report shows only `findings`."""
    findings: list[Finding]


class Message(TypedDict):
    """Seconds of one message in each repeat, and whether all results were correct."""

    kind: Literal["sweep", "bucket", "tuned_bucket", "gradients", "broadcast", "reduce"]
    message_bytes: types.Positive
    seconds: types.Repeats
    correct: bool
    launch: Literal["graph", "eager"]
    start_skew_seconds: NotRequired[list[types.Duration]]


class Sweep(types.Record):
    """Times of all-reduces and other collectives of several sizes, `sweep.json`."""

    gpus: types.Positive
    backend: str
    device: Device
    gradient_bytes: types.Positive
    rows: list[Message]


class Peak(TypedDict):
    """Seconds of one operation in each repeat; see `instruments.peaks` for which fields apply."""

    quantity: Literal["matrix_product", "device_copy", "gpu_to_gpu_copy"]
    seconds: types.Repeats
    precision: NotRequired[str]
    matrix_size: NotRequired[types.Positive]
    state: NotRequired[Literal["sprint", "sustained"]]
    copy_bytes: NotRequired[types.Positive]
    source_gpu: NotRequired[types.Whole]
    target_gpu: NotRequired[types.Whole]


class Peaks(types.Record):
    """The measured peak rates of a machine, `peaks.json`; `gpus` is 0 on a CPU."""

    device: Device
    gpus: types.Whole
    cpu_threads: types.Positive
    rows: list[Peak]


class RankEpoch(TypedDict):
    """Base of what a rank did in one epoch; epochs count from 0."""

    epoch: types.Whole
    rank: types.Whole


class Order(RankEpoch):
    """The images that a rank draws for an epoch; see `synchronization.worker.orders_of`."""

    samples: types.Positive
    order_sha256: str
    overlap: types.Whole | None
    unseen: types.Whole
    repeated: types.Whole


class Drawn(TypedDict):
    """Orders of images that a sampler draws, without a training."""

    sampler: Literal["RandomSampler", "DistributedSampler"]
    gpus: types.Positive
    seed: types.Whole
    set_epoch: bool
    orders: Annotated[list[Order], Len(1)]


class StepMessage(TypedDict):
    """A message of a step (0: before the first step); `bytes` is the sum over its tensors."""

    step: types.Whole
    phase: Literal["start", "forward", "backward", "update"]
    kind: str
    dtype: str
    elements: types.Whole
    bytes: types.Whole


class Steps(TypedDict):
    """Collectives of recorded training steps; `way` names the parallel strategy or variant."""

    way: str
    bucket_bytes: list[types.Whole]
    ranks_agree: bool
    messages: list[StepMessage]


class SharedEpoch(RankEpoch):
    """A rank's measurements of one epoch; see `training.trainer.EpochResult`."""

    seconds: types.Seconds
    loader_seconds: types.Duration | None
    iterations: types.Positive
    samples: types.Positive
    train_loss: types.Amount | None
    train_accuracy: types.Fraction | None


class Ended(TypedDict):
    """Quality of a rank's model after a training, and hashes of its parameters and buffers."""

    rank: types.Whole
    test_loss: types.Amount | None
    test_accuracy: types.Fraction
    parameters_sha256: str
    buffers_sha256: str


Drift = Literal["variance_max", "variance_mean", "mean_max", "mean_mean"]
"""Range of batch norm's running statistics over ranks; only older records have `mean_…`."""


class Shared(TypedDict):
    """A training whose ranks are compared; see `synchronization.worker.train`."""

    buffers: Literal["broadcast", "local", "sync_batch_norm"]
    set_epoch: bool
    seed: types.Whole
    epochs: Annotated[list[SharedEpoch], Len(1)]
    orders: Annotated[list[Order], Len(1)]
    ranks: Annotated[list[Ended], Len(1)]
    drift: dict[Drift, types.Amount | None]


class Synchronization(types.Record):
    """The record of the synchronization experiments, `synchronization.json`."""

    gpus: types.Positive
    device: Device
    backend: str
    train_images: types.Positive
    parameters: types.Options
    model: Annotated[dict[str, types.Whole], Len(3, 3)]
    """`parameter_bytes`, `buffer_bytes`, and `widest_norm`, the channels of the widest norm."""
    permutations: list[Drawn]
    steps: list[Steps]
    trainings: list[Shared]
    seconds: types.Seconds


Exactness = Annotated[dict[Literal["logits", "differing"], types.Whole], Len(2, 2)]
"""The number of logits also computed in integers, and how many of them differ."""
Classes = Annotated[dict[Literal["labels", "float32", "variant"], str], Len(3, 3)]
"""Classes of all test images, as `core.paired_accuracy` encodes them."""
Counts = Annotated[dict[Literal["bin_edges", "counts"], list[types.Number]], Len(2, 2)]
"""A histogram: the number of values between consecutive edges, in float units."""


class Accuracy(TypedDict):
    """Accuracy, its difference to the float network, and its noise; see `core.paired_accuracy`."""

    accuracy_percent: types.Percent
    difference_points: types.Number
    agreement_percent: types.Percent
    test_images: types.Positive
    standard_error_points: types.Amount
    gained: types.Whole
    lost: types.Whole


class SeedRecord(types.Record):
    """Base of a quantized network's record: its seed, its dataset, and the measuring device."""

    seed: types.Whole
    dataset: types.Images
    device: str
    calibration_images: types.Whole


@types.opened
class Options(TypedDict):
    """The options of a variant; see `config.scheme`."""

    mistakes: list[str]


@types.opened
class Entrance(TypedDict):
    """How input images are quantized: `scale` (levels per unit), clipped shares, noise (dB)."""

    scale: types.Amount
    range: types.Pair


@types.opened
class Layer(TypedDict):
    """A layer of a quantized network; fields of activations are absent for weights alone."""

    layer: str
    weight_bits: types.Positive
    weight_range: types.Pair
    packed_bytes: types.Positive
    float32_bytes: types.Positive
    output_range: NotRequired[types.Pair]
    # What tells a mistake.
    bias_error_steps: NotRequired[types.Amount]
    top_step: NotRequired[types.Amount | None]
    clipped_share_calibration: NotRequired[types.Fraction | None]
    sqnr_after_relu_db: NotRequired[types.Number | None]


class Histogram(TypedDict):
    """The distribution of one quantity of a layer before and after quantization."""

    layer: str
    quantity: str
    scale: types.Amount
    float: Counts
    int8: Counts


class VariantRecord(Accuracy, SeedRecord):
    """A variant of a tutorial CNN, `quantization.json`; see `quantization.variant`."""

    variant: str
    scheme: Options
    float32: dict[Literal["accuracy_percent"], types.Percent]
    classes: Classes
    calibration_checksum: str | None
    training_checksum: str
    packed_bytes: types.Positive
    float32_bytes: types.Positive
    exactness: Exactness | None
    input: Entrance | None
    layers: Annotated[list[Layer], Len(1)]
    histograms: NotRequired[list[Histogram]]


def _repeats(record: types.Row) -> Iterator[str]:
    """Yield a sentence if not all operations have the same number of repeats."""
    if len({len(row["seconds"]) for row in record["rows"]}) > 1:
        yield "rows have different numbers of repeats"


def _ranks(record: types.Row) -> Iterator[str]:
    """Yield a sentence for each rank or epoch that cannot exist, and each order that is twice."""
    for one in [*record["permutations"], *record["trainings"]]:
        ranks, epochs = range(one.get("gpus", record["gpus"])), range(len(one["orders"]))
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
