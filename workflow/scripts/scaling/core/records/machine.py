"""Records of a machine's measured limits and of the synchronization experiments."""

from typing import Annotated, Literal, NotRequired

from annotated_types import Len
from typing_extensions import TypedDict

from scaling.core.records import kind as types

Device = Literal["cpu", "cuda"]


class Finding(TypedDict):
    """A problem with a host, or with one of its GPUs (a UUID, else "")."""

    severity: Literal["bad", "odd"]
    host: str
    gpu: str
    message: str


class Look(types.Record):
    """The machine check before measuring, `check.json`."""

    check: str
    hosts: list[types.Row]
    gpus: list[types.Row]
    """The readings of `instruments.machine`; the report shows only `findings`."""
    findings: list[Finding]


class AllReduce(TypedDict):
    """Seconds of one all-reduce in each repeat, and if all sums were right."""

    kind: Literal["sweep", "bucket", "tuned_bucket", "gradients"]
    message_bytes: types.Positive
    seconds: types.Repeats
    correct: bool
    launch: Literal["graph", "eager"]
    start_skew_seconds: NotRequired[list[types.Amount]]


class Sweep(types.Record):
    """All-reduces over message sizes, `sweep.json`."""

    gpus: types.Positive
    backend: str
    device: Device
    gradient_bytes: types.Positive
    rows: list[AllReduce]


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


class Synchronization(types.Record):
    """The record of the synchronization experiments, `synchronization.json`.

    For the rows of `permutations`, `steps` and `trainings` see `scaling.synchronization.worker`.
    """

    gpus: types.Positive
    device: Device
    backend: str
    train_images: types.Positive
    parameters: types.Options
    model: Annotated[dict[str, types.Whole], Len(3, 3)]
    """`parameter_bytes`, `buffer_bytes`, and `widest_norm`, the channels of the widest norm."""
    permutations: list[types.Row]
    steps: list[types.Row]
    trainings: list[types.Row]
    seconds: types.Seconds


CHECK = types.Kind("the look at a machine", Look)
SWEEP = types.Kind("a sweep", Sweep)
PEAKS = types.Kind("peaks", Peaks)
SYNCHRONIZATION = types.Kind("what ranks share", Synchronization)
