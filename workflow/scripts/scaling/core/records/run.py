"""The record of a grid run: its fields and consistency checks."""

from collections.abc import Iterator
from typing import Annotated, Literal, NotRequired, get_args

from annotated_types import Len
from typing_extensions import TypedDict

from scaling.core.records import run_checks
from scaling.core.records.dataset import OwnData, ShapedDataset
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

    `sm_mhz` and `celsius` are those at the end.
    """

    energy_joules: Amount | None
    held_back_seconds: dict[str, Amount]
    """By each throttling reason."""
    sm_mhz: Whole | None
    celsius: Whole | None


class OfRank(TypedDict):
    """What one rank measured in a number of iterations."""

    rank: Whole
    iterations: Whole


class EpochOfRank(OfRank):
    """An epoch as one rank saw it; seconds are host seconds between device synchronizations."""

    epoch: Whole
    seconds: Seconds
    loader_seconds: Amount | None
    samples: Whole
    train_loss: Amount | None
    train_accuracy: Fraction | None


class EpochRow(EpochOfRank):
    """An epoch of a run, counted from 1."""

    role: Role
    power_capped_seconds: Amount | None
    """How long one of the rank's GPUs was at its power limit; null if not counted."""
    gpu_readings: list[GpuReading]


class Run(TypedDict):
    """Identifies a run of the grid (`grid.Cell`)."""

    recipe: str
    strategy: str
    gpus: Positive
    batch_size: Positive
    seed: Whole
    repeat: Whole


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

    Of a user's own command these are the checksums of the files that it names.
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
    """How gradients were exchanged: the bytes of each message, and `readings` of each rank."""

    backend: str | None
    bucket_bytes: list[Whole]
    sent_share: Amount | None
    """Bytes sent for the gradients, as a share of what the strategy sends for float32 ones."""
    readings: list[Reading]


class InMemory(OfRank):
    """Seconds of the same iterations on in-memory batches, in each repeat."""

    samples: Whole | None
    seconds: Repeats
    seconds_without_exchange: Repeats | None


KernelClass = Literal["products", "element-wise", "optimizer", "copies", "other", "communication"]
"""Of kernels, by the operator that launches them."""
OfClass = Annotated[dict[Literal["seconds", "bytes"], Amount], Len(2, 2)]
"""Seconds in which none of a class before it runs, and the known bytes read and written."""


class DeviceTime(OfRank):
    """Busy seconds of a device in a number of iterations, or a note why there are none."""

    gpu: NotRequired[Whole]
    seconds: NotRequired[Seconds]
    busy_seconds: NotRequired[Amount]
    compute_seconds: NotRequired[Amount]
    kernels: NotRequired[Whole]
    classes: NotRequired[dict[KernelClass, OfClass]]
    note: NotRequired[str]


OF_OURS = Parameters.__optional_keys__ - {"command"}
"""Keys of `training` that only a user's own command may lack."""


class RunRecord(Record):
    """The record of one run of the grid, `run.json`; fields that a run did not reach are null.

    For `readings`, `in_memory` and `device_time` see `scaling.instruments.steps`.
    """

    cell: Annotated[Row, As(Run)]
    status: Status
    message: str | None
    """One sentence for a status other than ok."""
    dataset: Annotated[Row, As(ShapedDataset | OwnData)]
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
    """From the start of the command to the end of its last process, without waiting for GPUs."""
    shutdown_seconds: float | None
    """The part of it after the last report."""
    untraced: NotRequired[str]
    """Why there is no `Cell.trace_path`."""
    measured_as: NotRequired[str]
    """The strategy of the run whose measurement this one shares."""


def _contradictions(record: RunRecord) -> Iterator[str]:
    """Yield what is impossible; what a user's own command prints is checked as it comes."""
    if record["training"]["engine"] != "command":
        if lacking := sorted(OF_OURS - record["training"].keys()):
            yield f"training.{lacking[0]}: Field required"
        yield from run_checks.contradictions(record)


RUN = Kind[RunRecord]("a run", RunRecord, _contradictions)
