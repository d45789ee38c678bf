"""The record of a grid run: its fields and consistency checks."""

import math
from collections import Counter
from collections.abc import Iterator
from operator import itemgetter
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
from scaling.core.settling import settling

Phase = Literal["launch", "imports", "join", "dataset", "recipe"]
PHASES: tuple[Phase, ...] = get_args(Phase)
"""The phases of a run's start-up; see `scaling.launch.supervisor`."""
Startup = Annotated[dict[Literal[Phase, "total"], Amount], Len(1, 6)]
"""Seconds of `PHASES` and their total; of a user's own command the total alone."""
PARTS = ("communication_seconds", "exposed_seconds", "overlapped_seconds")
"""Of a reading: all communication, and the parts that add up to it."""
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


class OwnDataset(TypedDict):
    """The images of a user's own command: nothing is known of them."""

    source: Literal["own"]


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
    """Every parameter of `launch.run_spec`, and the recipe options that could be applied."""

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


@opened
class OwnTraining(TypedDict):
    """A user's own command; `recipe_options` has the checksums of the files that it names."""

    engine: Literal["command"]
    command: str
    recipe_options: Options
    recipe_applied: None
    compiled_batch_sizes: None
    warmup_epochs: Whole
    measured_epochs: Positive
    cpu_threads: Positive


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

    `sent_share`: the bytes sent for the gradients, as a share of their own; null where the run
    ended before.
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


class DeviceTime(OfRank):
    """Busy seconds of a device in a number of iterations, or a note why there are none."""

    gpu: NotRequired[Whole]
    seconds: NotRequired[Seconds]
    busy_seconds: NotRequired[Amount]
    compute_seconds: NotRequired[Amount]
    kernels: NotRequired[Whole]
    note: NotRequired[str]


class RunRecord(Record):
    """The record of one run of the grid, `run.json`.

    `message` is one sentence for a status other than ok. `run_seconds` last from the start of the
    command to the end of its last process, without waiting for GPUs; `shutdown_seconds` are the
    part after the last report. Fields that a run did not reach are null. For `readings`,
    `in_memory` and `device_time` see `scaling.instruments.communication`. `measured_as` names the
    strategy of the run whose measurement this one shares.
    """

    cell: Annotated[Row, As(Run)]
    status: Status
    message: str | None
    dataset: Annotated[Row, As(ShapedDataset | OwnDataset)]
    model: Annotated[Row, As(Model)]
    training: Annotated[Row, As(Parameters | OwnTraining)]
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
    measured_as: NotRequired[str]


def _of_a_run(record: RunRecord) -> Iterator[str]:
    """Yield what is impossible in a run, each in a few words."""
    cell, status, rows = record["cell"], record["status"], record["epochs"]
    complete, processes = status in ("ok", "diverged"), len({row["rank"] for row in rows})
    if (status != "ok" and not record["message"]) or (status == "infeasible" and rows):
        yield f"status {status} without its message, or with epochs"
    places = [(row["epoch"], row["rank"]) for row in rows]
    last = min(max(places, default=(0, 0))[0], len(rows))
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
        if (row["loader_seconds"] or 0) > row["seconds"]:
            yield f"epoch {row['epoch']} waits for longer than it takes"
        if status == "ok" and row["train_loss"] is None:
            yield f"the loss of epoch {row['epoch']} is not finite, and the status ok"
        if complete and whole and row["iterations"] != math.ceil(row["samples"] / share):
            yield f"epoch {row['epoch']} has other iterations than its samples make"
        samples[row["epoch"]] += row["samples"] if whole else images
    # The sampler gives all ranks the same number, so some images twice.
    if complete:
        if not all(0 <= found - images < max(1, processes) for found in samples.values()):
            yield "an epoch has not the samples that the training set has"
        yield from _parts(record, processes)


def _parts(record: RunRecord, processes: int) -> Iterator[str]:
    """Yield which parts of a run that came to its end do not fit the others."""
    rows, memory, read = record["epochs"], record["in_memory"], record["communication"]["readings"]
    asked, model, start = record["training"], record["model"], record["startup"] or {"total": 0.0}
    count = Counter(row["role"] for row in rows if row["rank"] == 0)
    few = count["warmup"] < asked["warmup_epochs"] or count["measured"] < asked["measured_epochs"]
    seconds = [sum(row["seconds"] for row in rows if row["rank"] == n) for n in range(processes)]
    ranks = [row["rank"] for row in (*memory, *read, *record["device_time"])]
    repeats = {len(row["seconds"]) for row in memory}
    repeats |= {len(row["seconds_without_exchange"] or row["seconds"]) for row in memory}
    parts = [itemgetter(*PARTS)(row) for row in read if PARTS[-1] in row]
    devices = [row for row in record["device_time"] if "compute_seconds" in row]
    wrong = {
        f"status {record['status']} without a measured epoch": not count["measured"],
        "fewer epochs than asked for": record["status"] == "ok" and few,
        "epochs that take longer than the run": max(seconds, default=0)
        > (record["run_seconds"] or math.inf),
        "another settling than that of the epochs": record["settling"] != settling(rows),
        "a start that is not its phases": not math.isclose(sum(start.values()), 2 * start["total"]),
        "gradients not as many as parameters": (model["gradient_bytes"] or 0)
        != 4 * (model["parameters"] or 0),
        "not every rank's weights and memory": len(model["parameters_sha256"]) != processes
        or len(record["memory"]["peak_bytes"]) not in (0, processes, record["cell"]["gpus"]),
        "instruments of other ranks": max(ranks, default=0) >= processes
        or len(memory) not in (0, processes),
        "unlike repeats of ranks": len({row["iterations"] for row in memory}) > 1
        or len(repeats) > 1,
        "communication that is not its parts": not all(
            math.isclose(whole, exposed + overlapped, rel_tol=1e-6)
            for whole, exposed, overlapped in parts
        ),
        "a device that computes for longer than it is busy": any(
            row["compute_seconds"] > 1.000001 * row["busy_seconds"] for row in devices
        ),
    }
    yield from (what for what, found in wrong.items() if found)


def _contradictions(record: RunRecord) -> Iterator[str]:
    """Yield what is impossible; what a user's own command prints is checked as it comes."""
    if record["training"]["engine"] != "command":
        yield from _of_a_run(record)


RUN = Kind[RunRecord]("a run", RunRecord, _contradictions)
