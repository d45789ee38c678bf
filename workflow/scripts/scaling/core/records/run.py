"""The record of a grid run: its fields and consistency checks."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, NotRequired, get_args

from annotated_types import Len
from typing_extensions import TypedDict

from scaling.core.records import run_checks
from scaling.core.records.dataset import Shape
from scaling.core.records.fields import (
    Amount,
    As,
    Fraction,
    Options,
    Positive,
    Record,
    Repeats,
    Role,
    Row,
    Seconds,
    Status,
    Whole,
    opened,
)
from scaling.core.records.kind import Kind

Phase = Literal["launch", "imports", "join", "dataset", "recipe"]
PHASES: tuple[Phase, ...] = get_args(Phase)
"""The phases of a run's start-up; see `scaling.launch.supervisor`."""
Startup = Annotated[dict[Literal[Phase, "total"], Amount], Len(1, 6)]
"""Seconds of `PHASES` and their total; of a user's own command the total alone."""
Graphs = Annotated[dict[Literal["kept", "made"], Whole], Len(2, 2)]
"""Numbers of compiled graphs: loaded from the cache, and compiled anew."""


class GpuReading(TypedDict):
    """Counters of one GPU over an interval; null where its driver does not report them.

    `energy_joules` used and `held_back_seconds` by each throttling reason; `sm_mhz` and `celsius`
    at the end. At its power limit a GPU lowers its clocks: the same work then takes longer than on
    a GPU that has just started. An H200 updates its energy counter every 0.1 s.
    """

    energy_joules: Amount | None
    held_back_seconds: dict[str, Amount]
    sm_mhz: Whole | None
    celsius: Whole | None


class OfRank(TypedDict):
    """What one rank measured in a number of iterations."""

    rank: Whole
    iterations: Whole


class EpochOfRank(OfRank):
    """An epoch as one rank saw it; seconds are host seconds between device synchronizations."""

    seconds: Seconds
    loader_seconds: Amount | None
    samples: Whole
    train_loss: Amount | None
    train_accuracy: Fraction | None


class EpochRow(EpochOfRank):
    """An epoch of a run.

    `power_capped_seconds`: how long one of the rank's GPUs was at its power limit, by the driver's
    counter; null if not counted. `gpu_readings` are the rank's GPU counters over the epoch, empty
    on a CPU.
    """

    epoch: Positive
    role: Role
    power_capped_seconds: Amount | None
    gpu_readings: list[GpuReading]


class Run(TypedDict):
    """Identifies a run of the grid (`grid.Cell`)."""

    recipe: str
    strategy: str
    gpus: Positive
    batch_size: Positive
    seed: Whole
    repeat: Whole


class RunDataset(TypedDict):
    """The dataset of a run (`ShapedDataset`); of a user's own command only `source`, "own"."""

    source: str
    checksum: NotRequired[str]
    train_images: NotRequired[Positive]
    test_images: NotRequired[Positive]
    image_shape: NotRequired[Shape]


class Model(TypedDict):
    """The model with what `training.evaluation` counts, and the SHA-256 of each rank's weights."""

    name: str
    width: Positive
    options: Options
    parameters: Positive | None
    gradient_bytes: Positive | None
    flops_per_image: Positive | None
    activation_bytes_per_image: Positive | None
    parameters_sha256: list[str]


@opened
class Parameters(TypedDict):
    """Every parameter of `launch.run_spec`, and the recipe options that could be applied.

    A user's own command has none of SGD, but the `command`; its `recipe_options` are the checksums
    of the files that it names.
    """

    engine: str
    warmup_epochs: Whole
    measured_epochs: Positive
    recipe_options: Options
    recipe_applied: Options | None
    compiled_batch_sizes: list[Positive] | None
    cpu_threads: Positive
    command: NotRequired[str]
    learning_rate: NotRequired[Amount]
    momentum: NotRequired[Amount]
    weight_decay: NotRequired[Amount]
    crop_padding: NotRequired[Whole]
    horizontal_flip: NotRequired[bool]
    compiled_graphs: NotRequired[Graphs | None]
    micro_batches: NotRequired[Positive]
    measured_seconds: NotRequired[Amount]


class Evaluation(TypedDict):
    """Metrics on the test set after the last epoch."""

    test_loss: Amount | None
    test_accuracy: Fraction


class Settling(TypedDict):
    """Whether the measured epochs were steady; see `core.settling`."""

    drift: float | None
    settled: bool


class Memory(TypedDict):
    """Peak memory of each device (or host process), and the machine's capacity."""

    kind: Literal["device", "host"] | None
    peak_bytes: list[Whole]
    capacity_bytes: Amount | None


class Reading(OfRank):
    """Seconds of communication in a number of iterations, or a note why there are none."""

    estimate: Literal["without_communication", "profiler", "ddp_log"]
    communication_seconds: NotRequired[Amount]
    exposed_seconds: NotRequired[float]
    overlapped_seconds: NotRequired[Amount]
    note: NotRequired[str]


class Communication(TypedDict):
    """How gradients were exchanged: the bytes of each message, and `readings` of each rank.

    `sent_share`: the bytes sent for the gradients, as a share of what the strategy sends for
    gradients in float32; null where the run ended before.
    """

    backend: str | None
    bucket_bytes: list[Whole]
    sent_share: Amount | None
    readings: list[Reading]


class InMemory(OfRank):
    """Seconds of the same iterations on in-memory batches, in each repeat."""

    samples: Whole | None
    seconds: Repeats
    seconds_without_exchange: Repeats | None


KernelClass = Literal["products", "element-wise", "optimizer", "copies", "other", "communication"]
"""Convolutions and matrix products; normalization and element-wise operations; updates of weights;
copies; what no known operator launches; and exchange between devices."""
OfClass = Annotated[dict[Literal["seconds", "bytes"], Amount], Len(2, 2)]
"""Seconds of the kernels of a class, of communication what is exposed, and the bytes that they read
and wrote, as far as known."""


class DeviceTime(OfRank):
    """Busy seconds of a device in a number of iterations, or a note why there are none."""

    gpu: NotRequired[Whole]
    seconds: NotRequired[Seconds]
    busy_seconds: NotRequired[Amount]
    compute_seconds: NotRequired[Amount]
    kernels: NotRequired[Whole]
    classes: NotRequired[dict[KernelClass, OfClass]]
    note: NotRequired[str]


OF_OURS = {"dataset": RunDataset.__optional_keys__}
OF_OURS |= {"training": Parameters.__optional_keys__ - {"command"}}
"""Keys that only a user's own command may lack."""


class RunRecord(Record):
    """The record of one run of the grid, `run.json`.

    `message` is one sentence for a status other than ok. `run_seconds` last from the start of the
    command to the end of its last process, without waiting for GPUs; `shutdown_seconds` are the
    part after the last report. Fields that a run did not reach are null. For `readings`,
    `in_memory` and `device_time` see `scaling.instruments.communication`. `measured_as` names the
    strategy of the run whose measurement this one shares. `untraced`: why `Cell.trace_path` is not
    beside it.
    """

    cell: Annotated[Row, As(Run)]
    status: Status
    message: str | None
    dataset: Annotated[Row, As(RunDataset)]
    model: Annotated[Row, As(Model)]
    training: Annotated[Row, As(Parameters)]
    epochs: list[EpochRow]
    evaluation: Annotated[Row | None, As(Evaluation | None)]
    settling: Annotated[Row, As(Settling)]
    memory: Annotated[Row, As(Memory)]
    communication: Annotated[Row, As(Communication)]
    in_memory: Annotated[list[Row], As(list[InMemory])]
    device_time: Annotated[list[Row], As(list[DeviceTime])]
    startup: Annotated[dict[str, float] | None, As(Startup | None)]
    run_seconds: Seconds | None
    shutdown_seconds: float | None
    untraced: NotRequired[str]
    measured_as: NotRequired[str]


def _contradictions(record: RunRecord) -> Iterator[str]:
    """Yield what is impossible; what a user's own command prints is checked as it comes."""
    if record["training"]["engine"] == "command":
        return
    sections: Any = record
    for part, keys in OF_OURS.items():
        if lacking := sorted(keys - sections[part].keys()):
            yield f"{part}.{lacking[0]}: Field required"
            return
    yield from run_checks.contradictions(record)


RUN = Kind[RunRecord]("a run", RunRecord, _contradictions)
