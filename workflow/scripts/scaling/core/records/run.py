"""The record of a run of the grid: its fields, and what they may not contradict."""

import math
from collections.abc import Iterator
from typing import Annotated, Literal, NotRequired, get_args

from annotated_types import Len
from typing_extensions import TypedDict

from scaling.core.records.dataset import ShapedDataset
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
"""The phases of a run's start-up; see `scaling.launch.startup_clock`."""
Startup = Annotated[dict[Literal[Phase, "total"], Amount], Len(6, 6)]
"""Seconds of `PHASES` and their total."""
Graphs = Annotated[dict[Literal["kept", "made"], Whole], Len(2, 2)]
"""How many came from the cache, and how many were compiled."""


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


class OfRank(TypedDict):
    """What one rank did in so many iterations."""

    rank: Whole
    iterations: Whole


class EpochOfRank(OfRank):
    """An epoch as one rank saw it. Seconds are host seconds between device synchronisations."""

    seconds: Seconds
    loader_seconds: Amount
    samples: Whole
    train_loss: Amount | None
    train_accuracy: Fraction | None


class EpochRow(EpochOfRank):
    """An epoch of a run.

    `power_capped_seconds`: for how long one of the rank's GPUs was held back by its power limit, as
    the driver counts it; null where none does. `gpu_readings` are those of its GPUs over the epoch,
    empty on a CPU.
    """

    epoch: Positive
    role: Role
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
    """Every parameter of `launch.run_spec`, and what could be applied of the recipe's options."""

    learning_rate: Amount
    momentum: Amount
    weight_decay: Amount
    crop_padding: Whole
    horizontal_flip: bool
    warmup_epochs: Whole
    measured_epochs: Positive
    engine: str
    recipe_options: Options
    recipe_applied: Options | None
    compiled_batch_sizes: list[Positive] | None
    compiled_graphs: Graphs | None
    cpu_threads: Positive
    micro_batches: Positive
    measured_seconds: Amount


class Evaluation(TypedDict):
    """The test set after the last epoch."""

    test_loss: Amount | None
    test_accuracy: Fraction


class Settling(TypedDict):
    """How the measured epochs changed; see `core.settling`."""

    drift: float | None
    settled: bool


class Memory(TypedDict):
    """The most memory of each device, or process on a host, and what the machine has of it."""

    kind: Literal["device", "host"] | None
    peak_bytes: list[Whole]
    capacity_bytes: Amount | None


class Reading(OfRank):
    """Seconds of communication in so many iterations, or a note that says why there are none."""

    estimate: Literal["without_communication", "profiler", "ddp_log"]
    communication_seconds: NotRequired[Amount]
    exposed_seconds: NotRequired[float]
    overlapped_seconds: NotRequired[Amount]
    note: NotRequired[str]


class Communication(TypedDict):
    """How gradients were exchanged: the bytes of each message, and `readings` of each rank.

    `sent_share`: the bytes sent for the gradients, as a share of their own; null where the run
    ended before.
    """

    backend: str | None
    bucket_bytes: list[Whole]
    sent_share: Amount | None
    readings: list[Reading]


class InMemory(OfRank):
    """Seconds of the same iterations on batches in memory, in each repeat."""

    samples: Whole | None
    seconds: Repeats
    seconds_without_exchange: Repeats | None


class DeviceTime(OfRank):
    """Seconds of a device in so many iterations, or a note that says why there are none."""

    gpu: NotRequired[Whole]
    seconds: NotRequired[Seconds]
    busy_seconds: NotRequired[Amount]
    compute_seconds: NotRequired[Amount]
    kernels: NotRequired[Whole]
    note: NotRequired[str]


class RunRecord(Record):
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
    dataset: Annotated[Row, As(ShapedDataset)]
    model: Annotated[Row, As(Model)]
    training: Annotated[Row, As(Parameters)]
    epochs: list[EpochRow]
    evaluation: Annotated[dict[str, float] | None, As(Evaluation | None)]
    settling: Annotated[Row, As(Settling)]
    memory: Annotated[Row, As(Memory)]
    communication: Annotated[Row, As(Communication)]
    in_memory: Annotated[list[Row], As(list[InMemory])]
    device_time: Annotated[list[Row], As(list[DeviceTime])]
    startup: Annotated[dict[str, float] | None, As(Startup | None)]
    run_seconds: Seconds | None
    shutdown_seconds: float | None
    measured_as: NotRequired[str]


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
