"""The record of a grid run: its fields and consistency checks."""

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NotRequired, get_args

from annotated_types import Len
from typing_extensions import TypedDict

from scaling.core.grid import Cell
from scaling.core.records.kind import (
    Amount,
    As,
    Fraction,
    Kind,
    Options,
    OwnData,
    Positive,
    Record,
    Repeats,
    Role,
    Row,
    Seconds,
    ShapedDataset,
    Status,
    Whole,
    of_images,
    opened,
)
from scaling.core.statistics import settling

Startup = Annotated[dict[str, Amount], Len(1, 6)]
"""The `total` seconds until the first epoch; older records have those of its phases too."""


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
    """What is read of the parameters of `launch.run_spec`, and the options that could be applied.

    Of a user's own command also the checksums of the files that it names.
    """

    engine: str
    warmup_epochs: Whole
    measured_epochs: Positive
    recipe_options: Options
    recipe_applied: Options | None
    compiled_batch_sizes: list[Positive] | None
    cpu_threads: Positive
    command: NotRequired[str]


class Evaluation(TypedDict):
    """Metrics on the test set after the last epoch."""

    test_loss: Amount | None
    test_accuracy: Fraction


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
OfClass = Annotated[dict[Literal["seconds", "running_seconds", "bytes"], Amount], Len(2, 3)]
"""Seconds in which none of a class before it runs, seconds in which it runs (records before version
5 have none), and the known bytes read and written."""


class DeviceTime(OfRank):
    """Busy seconds of a device in a number of iterations, or a note why there are none."""

    gpu: NotRequired[Whole]
    seconds: NotRequired[Seconds]
    busy_seconds: NotRequired[Amount]
    compute_seconds: NotRequired[Amount]
    kernels: NotRequired[Whole]
    classes: NotRequired[dict[KernelClass, OfClass]]
    note: NotRequired[str]


class RunRecord(Record):
    """The record of one run of the grid, `run.json`; fields that a run did not reach are null.

    For `readings`, `in_memory` and `device_time` see `scaling.instruments.steps`.
    """

    cell: Annotated[Row, As(Cell)]
    status: Status
    message: str | None
    """One sentence for a status other than ok."""
    dataset: Annotated[Row, As(ShapedDataset | OwnData)]
    model: Annotated[Row, As(Model)]
    training: Annotated[Row, As(Parameters)]
    epochs: list[EpochRow]
    evaluation: Annotated[Row | None, As(Evaluation | None)]
    settling: Row
    """Whether the measured epochs were steady; see `core.statistics.settling`."""
    memory: Annotated[Row, As(Memory)]
    communication: Annotated[Row, As(Communication)]
    in_memory: Annotated[list[Row], As(list[InMemory])]
    device_time: Annotated[list[Row], As(list[DeviceTime])]
    startup: Annotated[dict[str, float] | None, As(Startup | None)]
    run_seconds: Seconds | None
    """From the start of the command to the end of its last process, without waiting for GPUs."""
    shutdown_seconds: NotRequired[float | None]
    """The part of it after the last report; in older records."""
    measured_as: NotRequired[str]
    """The strategy of the run whose measurement this one shares."""


def _contradictions(record: Any) -> Iterator[str]:
    """Yield what is impossible; what a user's own command prints is checked as it comes."""
    if record["training"]["engine"] == "command":
        return
    status, rows = record["status"], record["epochs"]
    complete, processes = status in ("ok", "diverged"), len({row["rank"] for row in rows})
    if (status != "ok" and not record["message"]) or (status == "infeasible" and rows):
        yield f"status {status} without its message, or with epochs"
    places = [(row["epoch"], row["rank"]) for row in rows]
    wanted = sorted(set(places))
    if complete:
        last = min(max(places, default=(0, 0))[0], len(rows))
        wanted = [(epoch, rank) for epoch in range(1, last + 1) for rank in range(processes)]
    roles = [get_args(Role).index(row["role"]) for row in rows]
    if places != wanted or roles != sorted(roles):
        yield "epochs or their ranks are missing, twice, or out of order"
    elif complete:
        yield from _epochs(record, processes)
        yield from (said for said, wrong in _parts(record, processes).items() if wrong)


def _epochs(record: Any, processes: int) -> Iterator[str]:
    """Yield which epochs of a run that came to its end are impossible."""
    cell, images = record["cell"], record["dataset"]["train_images"]
    samples: dict[int, int] = {}
    for row in record["epochs"]:
        number = row["epoch"]
        if (row["loader_seconds"] or 0) > row["seconds"]:
            yield f"epoch {number} waits for longer than it takes"
        if record["status"] == "ok" and row["train_loss"] is None:
            yield f"the loss of epoch {number} is not finite, and the status ok"
        if row["role"] != "instrumented":
            share = cell["batch_size"] * cell["gpus"] // processes
            samples[number] = samples.get(number, 0) + row["samples"]
            if row["iterations"] != math.ceil(row["samples"] / share):
                yield f"epoch {number} has other iterations than its samples make"
        if not of_images(row["train_accuracy"], row["samples"]):
            yield f"epoch {number} has an accuracy that is not that of its samples"
    # The sampler gives all ranks the same number, so some images twice.
    if not all(0 <= found - images < processes for found in samples.values()):
        yield "an epoch has not the samples that the training set has"


def _parts(record: Any, processes: int) -> dict[str, bool]:
    """Return, by what it says, which parts of a run that came to its end do not fit its epochs."""
    first = [row for row in record["epochs"] if row["rank"] == 0]
    roles, asked = [row["role"] for row in first], record["training"]
    few = any(roles.count(role) < asked[f"{role}_epochs"] for role in ("warmup", "measured"))
    readings, model = record["communication"]["readings"], record["model"]
    instruments = [*record["in_memory"], *readings, *record["device_time"]]
    accuracy = record["evaluation"] and record["evaluation"]["test_accuracy"]
    return {
        "fewer epochs than asked for, or no measured one": "measured" not in roles
        or (record["status"] == "ok" and few),
        "epochs that take longer than the run": sum(row["seconds"] for row in first)
        > 1.001 * (record["run_seconds"] or math.inf),
        "another settling than that of the epochs": record["settling"]
        != settling(record["epochs"]),
        "not every rank's weights": len(model["parameters_sha256"]) != processes,
        "a test accuracy that is not that of its images": not of_images(
            accuracy, record["dataset"]["test_images"]
        ),
        "instruments of other ranks": any(row["rank"] >= processes for row in instruments),
        "communication that is not its parts": not all(map(_adds_up, readings)),
        "gradients not as many as parameters": (model["gradient_bytes"] or 0)
        != 4 * (model["parameters"] or 0),
    }


def _adds_up(reading: Any) -> bool:
    """Return whether all communication of a traced rank is what is exposed and what is hidden."""
    parts = reading.get("exposed_seconds", 0) + reading.get("overlapped_seconds", math.inf)
    return parts == math.inf or math.isclose(reading["communication_seconds"], parts, rel_tol=1e-6)


RUN = Kind[RunRecord]("a run", RunRecord, _contradictions)
