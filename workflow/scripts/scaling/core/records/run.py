"""The record of a grid run: its fields and consistency checks."""

import math
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Literal, NotRequired

from annotated_types import Len
from typing_extensions import TypedDict

from scaling.core.grid import Cell
from scaling.core.records import kind as types

Startup = Annotated[dict[Literal["total", "cudnn_search"], types.Duration], Len(1)]
"""Seconds until the first epoch, and those of them in which cuDNN searched for algorithms."""
MOST_WATTS = 10_000
"""More than any GPU takes."""
BLOCKS = ("seconds", "seconds_without_exchange")
RunRecord = types.Row
"""A record as `Run` describes it."""


class GpuReading(TypedDict):
    """Counters of one GPU over an interval; null where its driver does not report them.

    `held_back_seconds` are by each throttling reason, `sm_mhz` and `celsius` at the end.
    """

    energy_joules: types.Amount | None
    held_back_seconds: dict[str, types.Duration]
    sm_mhz: types.Whole | None
    celsius: types.Whole | None


class OfRank(TypedDict):
    """What one rank measured in a number of iterations."""

    rank: types.Whole
    iterations: types.Whole


class EpochRow(OfRank):
    """An epoch of a run as one rank saw it; seconds are of the host, between synchronizations."""

    epoch: types.Whole
    """From 1."""
    seconds: types.Seconds
    loader_seconds: types.Duration | None
    samples: types.Whole
    train_loss: types.Amount | None
    train_accuracy: types.Fraction | None
    role: types.Role
    power_capped_seconds: types.Duration | None
    """How long one of the rank's GPUs was at its power limit; null if not counted."""
    gpu_readings: list[GpuReading]


class Energy(TypedDict):
    """The joules of each GPU of a rank from before the first epoch of a role to after the last."""

    rank: types.Whole
    role: types.Role
    seconds: types.Seconds
    joules: list[types.Amount | None]
    power_capped_seconds: types.Amount | None
    """How long one of these GPUs was at its power limit, at most `seconds`."""
    counts: str
    """Whose energy that is."""


class Model(TypedDict):
    """The model with what `training.evaluation` counts, and the SHA-256 of each rank's weights."""

    name: str
    width: types.Positive
    options: types.Options
    parameters: types.Positive | None
    gradient_bytes: types.Positive | None
    flops_per_image: types.Positive | None
    activation_bytes_per_image: NotRequired[types.Positive | None]
    parameters_sha256: list[str]


@types.opened
class Parameters(TypedDict):
    """What is read of the parameters of `launch.run_spec`, and the options that could be applied.

    The options of a user's own command are the checksums of the files that it names.
    """

    engine: str
    warmup_epochs: types.Whole
    measured_epochs: types.Positive
    recipe_options: types.Options
    recipe_applied: types.Options | None
    cpu_threads: types.Positive
    command: NotRequired[str]


class Evaluation(TypedDict):
    """Metrics on the test set after the last epoch."""

    test_loss: types.Amount | None
    test_accuracy: types.Fraction


class Memory(TypedDict):
    """Peak memory of each device (or host process), and the machine's capacity."""

    kind: Literal["device", "host"] | None
    peak_bytes: list[types.Whole]
    capacity_bytes: types.Amount | None


class Reading(OfRank):
    """Seconds of communication in a number of iterations, or a note why there are none.

    Those of messages are without `start_skew_seconds`, which older records do not tell apart.
    """

    estimate: Literal["without_communication", "profiler", "ddp_log"]
    communication_seconds: NotRequired[types.Duration]
    exposed_seconds: NotRequired[types.Number]
    overlapped_seconds: NotRequired[types.Duration]
    start_skew_seconds: NotRequired[types.Duration]
    note: NotRequired[str]


class Communication(TypedDict):
    """How gradients were exchanged: the bytes of each message, and `readings` of each rank."""

    backend: str | None
    bucket_bytes: list[types.Whole]
    sent_share: types.Amount | None
    """Bytes sent for the gradients, as a share of what the strategy sends for float32 ones."""
    readings: list[Reading]


class InMemory(OfRank):
    """Seconds of the same iterations on in-memory batches, in each block; see `IN_TURN`."""

    samples: types.Whole | None
    seconds: types.Repeats
    seconds_without_exchange: types.Repeats | None


KernelClass = Literal["products", "element-wise", "optimizer", "copies", "other", "communication"]
"""Of kernels, by the operator that launches them."""
OfClass = Annotated[dict[Literal["seconds", "running_seconds", "bytes"], types.Amount], Len(2, 3)]
"""Seconds in which none of a class before it runs, seconds in which it runs (records before version
5 have none), and the known bytes read and written."""


class DeviceTime(OfRank):
    """Busy seconds of a device in a number of iterations, or a note why there are none."""

    gpu: NotRequired[types.Whole]
    seconds: NotRequired[types.Seconds]
    busy_seconds: NotRequired[types.Duration]
    compute_seconds: NotRequired[types.Duration]
    kernels: NotRequired[types.Whole]
    classes: NotRequired[dict[KernelClass, OfClass]]
    note: NotRequired[str]


class Run(types.Record):
    """The record of one run of the grid, `run.json`; fields that a run did not reach are null.

    For `readings`, `in_memory` and `device_time` see `scaling.instruments.steps`.
    """

    cell: Cell
    status: types.Status
    message: str | None
    """One sentence for a status other than ok."""
    dataset: types.ShapedDataset | types.OwnData
    model: Model
    training: Parameters
    epochs: list[EpochRow]
    energy: NotRequired[list[Energy]]
    """Read once for all epochs of a role; older records have it only in the epochs."""
    evaluation: Evaluation | None
    settling: types.Row
    """Whether the measured epochs were steady; see `core.statistics.settling`."""
    memory: Memory
    communication: Communication
    in_memory: list[InMemory]
    device_time: list[DeviceTime]
    startup: Startup | None
    run_seconds: types.Seconds | None
    """From the start of the command to the end of its last process, without waiting for GPUs."""


def _contradictions(record: RunRecord) -> Iterator[str]:
    """Yield what is impossible; what a user's own command prints is checked as it comes."""
    yield from (said for said, wrong in _amounts(record).items() if wrong)
    if record["training"]["engine"] == "command":
        return
    rows, complete = record["epochs"], record["status"] in ("ok", "diverged")
    processes = len({row["rank"] for row in rows})
    places = [(row["epoch"], row["rank"]) for row in rows]
    wanted = sorted(set(places))
    if complete:
        last = min(max(places, default=(0, 0))[0], len(rows))
        wanted = [(epoch, rank) for epoch in range(1, last + 1) for rank in range(processes)]
    if places != wanted or (complete and not any(row["role"] == "measured" for row in rows)):
        yield "epochs or their ranks are missing, twice, or out of order"
        return
    samples: Counter[int] = Counter()
    for row in rows if complete else ():
        samples[row["epoch"]] += row["samples"]
        if (row["loader_seconds"] or 0) > row["seconds"]:
            yield f"epoch {row['epoch']} waits for longer than it takes"
    # The sampler gives all ranks the same number, so some images twice.
    images = record["dataset"]["train_images"]
    if not all(0 <= found - images < processes for found in samples.values()):
        yield "an epoch has not the samples that the training set has"
    if complete and len(record["model"]["parameters_sha256"]) != processes:
        yield "not every rank's weights"


def _amounts(record: RunRecord) -> dict[str, bool]:
    """Return, by what it says, which seconds and joules of a run cannot be, whatever its status."""
    rows, whole = record["epochs"], 1.001 * (record["run_seconds"] or math.inf)
    own = [(row["seconds"], one["energy_joules"]) for row in rows for one in row["gpu_readings"]]
    own += [(row["seconds"], one) for row in record.get("energy", []) for one in row["joules"]]
    blocks = {
        len(one[key]) for one in record["in_memory"] for key in BLOCKS if one[key] is not None
    }
    first = sum(row["seconds"] for row in rows if row["rank"] == 0)
    return {
        "epochs that take longer than the run": first > whole,
        "a start-up that takes longer than the run": (record["startup"] or {}).get("total", 0)
        > whole,
        "more energy than a GPU takes": any((one or 0) > MOST_WATTS * (s + 1) for s, one in own),
        "instruments of different repeats": len(blocks) > 1,
    }


RUN = types.Kind("a run", Run, _contradictions)
