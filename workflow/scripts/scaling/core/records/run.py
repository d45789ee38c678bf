"""The record of a run of the grid: its fields, and what they may not contradict."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Annotated, Literal, NotRequired, get_args

from typing_extensions import TypedDict

from scaling.core.records.fields import (
    Amount,
    As,
    Fraction,
    Images,
    Options,
    Positive,
    Repeats,
    Role,
    Row,
    Seconds,
    Status,
    Whereabouts,
    Whole,
    closed,
    opened,
)
from scaling.core.records.kind import Kind

PHASES = ["launch", "imports", "join", "dataset", "recipe"]
"""The phases of a run's start-up; see `scaling.launch.startup_clock`."""
STEADY = 0.02
"""The largest drift, as a share, of epochs that have settled whatever their noise."""


class GpuReading(TypedDict):
    """One GPU over a span of time; null is what its driver does not tell.

    `energy_joules` it took and `held_back_seconds` by each reason that is counted; `sm_mhz` and
    `celsius` at the end. At its power limit a driver lowers the clocks: the same work takes longer
    than on a GPU that has only begun to work. An H200 counts in steps of 0.1 s.
    """

    energy_joules: Amount | None
    held_back_seconds: dict[str, Amount]
    sm_mhz: Whole | None
    celsius: Whole | None


class EpochRow(TypedDict):
    """One epoch as one rank saw it. Seconds are host seconds between device synchronisations.

    `power_capped_seconds`: for how long one of its GPUs was held back by its power limit, as the
    driver counts it; null where none does. `gpu_readings` are those of its GPUs over the epoch,
    empty on a CPU.
    """

    epoch: Positive
    rank: Whole
    role: Role
    seconds: Seconds
    loader_seconds: Amount
    iterations: Whole
    samples: Whole
    train_loss: Amount | None
    train_accuracy: Fraction | None
    power_capped_seconds: Amount | None
    gpu_readings: list[GpuReading]


class Run(TypedDict):
    """Which run of the grid it is (`grid.Cell`)."""

    recipe: str
    strategy: str
    gpus: Positive
    batch_size: Positive
    seed: Whole
    repeat: Whole


class Dataset(Images):
    """What it was trained on; `image_shape` is pixels, pixels, channels."""

    train_images: Positive
    test_images: Positive
    image_shape: list[Positive]


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


class CompiledGraphs(TypedDict):
    """How many graphs came from the cache, and how many were compiled."""

    kept: Whole
    made: Whole


@opened
class Parameters(TypedDict):
    """Every parameter of `launch.run_spec`, and what could be applied of the recipe's options."""

    learning_rate: Amount
    momentum: Amount
    weight_decay: Amount
    crop_padding: Whole
    horizontal_flip: bool
    warmup_epochs: Whole
    measured_epochs: Positive
    recipe_options: Options
    recipe_applied: Options | None
    compiled_batch_sizes: list[Positive] | None
    compiled_graphs: CompiledGraphs | None
    cpu_threads: Positive
    micro_batches: Positive
    measured_seconds: Amount


class Evaluation(TypedDict):
    """The test set after the last epoch."""

    test_loss: Amount | None
    test_accuracy: Fraction


class Settling(TypedDict):
    """How the measured epochs changed; see `drift`."""

    drift: float | None
    settled: bool


class Memory(TypedDict):
    """The most memory of each device, or process on a host, and what the machine has of it."""

    kind: Literal["device", "host"] | None
    peak_bytes: list[Whole]
    capacity_bytes: Amount | None


class Reading(TypedDict):
    """Seconds of communication in so many iterations, or a note that says why there are none."""

    rank: Whole
    estimate: Literal["without_communication", "profiler", "ddp_log"]
    iterations: Whole
    communication_seconds: NotRequired[Amount]
    exposed_seconds: NotRequired[float]
    overlapped_seconds: NotRequired[Amount]
    note: NotRequired[str]


class Communication(TypedDict):
    """How gradients were exchanged: the bytes of each message, and `readings` of each rank."""

    backend: str | None
    bucket_bytes: list[Whole]
    readings: list[Reading]


class InMemory(TypedDict):
    """Seconds of the same iterations on batches in memory, in each repeat."""

    rank: Whole
    iterations: Whole
    samples: Whole | None
    seconds: Repeats
    seconds_without_exchange: Repeats | None


class DeviceTime(TypedDict):
    """Seconds of a device in so many iterations, or a note that says why there are none."""

    rank: Whole
    iterations: Whole
    gpu: NotRequired[Whole]
    seconds: NotRequired[Seconds]
    busy_seconds: NotRequired[Amount]
    compute_seconds: NotRequired[Amount]
    kernels: NotRequired[Whole]
    note: NotRequired[str]


class Startup(TypedDict):
    """Seconds of `PHASES` and their total."""

    launch: Amount
    imports: Amount
    join: Amount
    dataset: Amount
    recipe: Amount
    total: Amount


@closed
class RunRecord(TypedDict):
    """The record of one run of the grid, `run.json`.

    `message` is one sentence for a status other than ok. `run_seconds`: from the start of the
    command to the end of its last process, without the wait for GPUs; `shutdown_seconds` of them
    after the last report. Null is what a run did not reach. `readings`, `in_memory` and
    `device_time` are as `scaling.instruments.communication` has them. `measured_as`: the strategy
    of the run that this one shares its measurement with.
    """

    cell: Annotated[Row, As(Run)]
    status: Status
    message: str | None
    dataset: Annotated[Row, As(Dataset)]
    model: Annotated[Row, As(Model)]
    training: Annotated[Row, As(Parameters)]
    epochs: list[EpochRow]
    evaluation: Annotated[dict[str, float] | None, As(Evaluation | None)]
    settling: Annotated[Row, As(Settling)]
    memory: Annotated[Row, As(Memory)]
    communication: Annotated[Row, As(Communication)]
    environment: Whereabouts
    in_memory: Annotated[list[Row], As(list[InMemory])]
    device_time: Annotated[list[Row], As(list[DeviceTime])]
    startup: Annotated[dict[str, float] | None, As(Startup | None)]
    run_seconds: Seconds | None
    shutdown_seconds: float | None
    measured_as: NotRequired[str]


def drift(seconds: Sequence[float]) -> tuple[float, bool]:
    """How much longer the last third of epochs take than the first, and whether they have settled.

    The share by which the median of the last third is above that of the first. They have settled
    where it is at most `STEADY`, or less than the noise: the median difference of an epoch from the
    one before it, which a trend hardly widens (von Neumann et al., Annals of Mathematical
    Statistics 12, 1941, pp. 153–162). NaN, and not settled, for fewer than 3 epochs.
    """
    if len(seconds) < 3:
        return math.nan, False
    third = len(seconds) // 3
    first, last = median(seconds[:third]), median(seconds[-third:])
    noise = median(abs(after - before) for before, after in pairwise(seconds)) / first
    return last / first - 1, abs(last / first - 1) <= max(STEADY, noise)


def settling(epochs: list[EpochRow]) -> Row:
    """The `drift` of the measured epochs, each as long as its slowest rank's, and `settled`."""
    seconds: dict[int, float] = {}
    for row in epochs:
        if row["role"] == "measured":
            seconds[row["epoch"]] = max(seconds.get(row["epoch"], 0.0), row["seconds"])
    change, settled = drift(list(seconds.values()))
    return {"drift": None if math.isnan(change) else change, "settled": settled}


def _contradictions(record: RunRecord) -> Iterator[str]:
    """What no run reports, each in a few words."""
    cell, status, rows = record["cell"], record["status"], record["epochs"]
    complete, processes = status in ("ok", "diverged"), len({row["rank"] for row in rows})
    if (status != "ok" and not record["message"]) or (status == "infeasible" and rows):
        yield f"status {status} without its message, or with epochs"
    if complete and not any(row["role"] == "measured" for row in rows):
        yield f"status {status} without a measured epoch"
    places = [(row["epoch"], row["rank"]) for row in rows]
    last = max(places, default=(0, 0))[0]
    wanted = sorted(set(places))
    if complete:
        wanted = [(epoch, rank) for epoch in range(1, last + 1) for rank in range(processes)]
    roles = [get_args(Role).index(row["role"]) for row in rows]
    if places != wanted or roles != sorted(roles):
        yield "epochs or their ranks are missing, twice, or out of order"
    images, samples = record["dataset"]["train_images"], dict.fromkeys(range(1, last + 1), 0)
    for row in rows:
        share = cell["batch_size"] * cell["gpus"] // processes
        whole = row["role"] != "instrumented"
        if row["loader_seconds"] > row["seconds"]:
            yield f"epoch {row['epoch']} waits for longer than it takes"
        if status == "ok" and row["train_loss"] is None:
            yield f"the loss of epoch {row['epoch']} is not finite, and the status ok"
        if complete and whole and row["iterations"] != math.ceil(row["samples"] / share):
            yield f"epoch {row['epoch']} has other iterations than its samples make"
        samples[row["epoch"]] += row["samples"] if whole else images
    # The sampler gives all ranks as many, so some images twice.
    if complete and not all(0 <= found - images < max(1, processes) for found in samples.values()):
        yield "an epoch has not the samples that the training set has"


RUN = Kind[RunRecord]("a run", RunRecord, _contradictions)
