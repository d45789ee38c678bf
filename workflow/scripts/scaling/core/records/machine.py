"""Records of a machine's measured limits and of the synchronization experiments."""

from typing import Annotated, Literal, NotRequired

from annotated_types import Len
from typing_extensions import TypedDict

from scaling.core.records.kind import (
    Amount,
    Fraction,
    Kind,
    Options,
    Positive,
    Record,
    Repeats,
    Row,
    Seconds,
    Whole,
)
from scaling.core.records.run import EpochOfRank

Device = Literal["cpu", "cuda"]
Drift = Annotated[
    dict[Literal["mean_max", "mean_mean", "variance_max", "variance_mean"], Amount | None],
    Len(2, 4),
]
"""The spread of the running statistics over the ranks, relative to their size."""
Sizes = Annotated[dict[Literal["parameter_bytes", "buffer_bytes", "widest_norm"], Whole], Len(3, 3)]


class Finding(TypedDict):
    """A problem with a host, or with one of its GPUs (a UUID, else "")."""

    severity: Literal["bad", "odd"]
    host: str
    gpu: str
    message: str


class Look(Record):
    """The machine check before measuring, `check.json`."""

    check: str
    hosts: list[Row]
    gpus: list[Row]
    """The readings of `instruments.machine`; the report shows only `findings`."""
    findings: list[Finding]


class AllReduce(TypedDict):
    """Seconds of one all-reduce in each repeat, and if all sums were right."""

    kind: Literal["sweep", "bucket", "tuned_bucket", "gradients"]
    message_bytes: Positive
    seconds: Repeats
    correct: bool
    launch: Literal["graph", "eager"]


class Sweep(Record):
    """All-reduces over message sizes, `sweep.json`."""

    gpus: Positive
    backend: str
    device: Device
    gradient_bytes: Positive
    rows: list[AllReduce]


class Peak(TypedDict):
    """Seconds of one operation in each repeat; see `instruments.peaks` for which fields apply."""

    quantity: Literal["matrix_product", "device_copy", "gpu_to_gpu_copy"]
    seconds: Repeats
    precision: NotRequired[str]
    matrix_size: NotRequired[Positive]
    state: NotRequired[Literal["sprint", "sustained"]]
    copy_bytes: NotRequired[Positive]
    source_gpu: NotRequired[Whole]
    target_gpu: NotRequired[Whole]


class Peaks(Record):
    """The measured peak rates of a machine, `peaks.json`; `gpus` is 0 on a CPU."""

    device: Device
    gpus: Whole
    cpu_threads: Positive
    rows: list[Peak]


class Message(TypedDict):
    """A message recorded by `instruments.messages`; step 0 is before the first step."""

    step: Whole
    phase: str
    kind: str
    dtype: str
    elements: Whole
    bytes: Whole


class Order(TypedDict):
    """The images that a rank drew in an epoch; see `synchronization.worker`."""

    epoch: Whole
    rank: Whole
    samples: Whole
    order_sha256: str
    overlap: Whole | None
    unseen: Whole
    repeated: Whole


class Permutation(TypedDict):
    """The orders that a sampler draws for a number of ranks."""

    sampler: str
    gpus: Positive
    seed: Whole
    set_epoch: bool
    orders: list[Order]


class Step(TypedDict):
    """The messages of the first training steps of one parallel mode."""

    way: str
    bucket_bytes: list[Whole]
    ranks_agree: bool
    messages: list[Message]


class RankModel(TypedDict):
    """One rank's copy of the trained model."""

    rank: Whole
    test_loss: Amount | None
    test_accuracy: Fraction | None
    parameters_sha256: str
    buffers_sha256: str


class SharedTraining(TypedDict):
    """A training with recipe `plain`, with the results of each rank."""

    buffers: str
    set_epoch: bool
    seed: Whole
    epochs: Annotated[list[EpochOfRank], Len(1)]
    orders: list[Order]
    ranks: Annotated[list[RankModel], Len(1)]
    drift: Drift


class Synchronization(Record):
    """The record of the synchronization experiments, `synchronization.json`."""

    gpus: Positive
    device: Device
    backend: str
    train_images: Positive
    parameters: Options
    model: Sizes
    """Bytes, and the channels of the widest norm."""
    permutations: list[Permutation]
    steps: list[Step]
    trainings: list[SharedTraining]
    buffer_seconds: NotRequired[list[Row]]
    """Like `agreement` of older records, which no code reads."""
    agreement: NotRequired[list[Row]]
    seconds: Seconds


CHECK = Kind[Row]("the look at a machine", Look)
SWEEP = Kind[Row]("a sweep", Sweep)
PEAKS = Kind[Row]("peaks", Peaks)
SYNCHRONIZATION = Kind[Row]("what ranks share", Synchronization)
