"""Schemas of the records of trainings: runs of the grid, and techniques for large batches."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal, NotRequired

from annotated_types import Len
from pydantic import AfterValidator
from typing_extensions import TypedDict

from scaling.core.grid import Cell
from scaling.core.records import kind as types

Startup = Annotated[dict[Literal["total", "cudnn_search"], types.Duration], Len(1)]
"""`total`: seconds from launch to the first epoch. `cudnn_search`: seconds of cuDNN's search."""
RunRecord = types.Row
"""The record of a run as a dictionary. The class `Run` lists its keys."""
TechniqueRecord = types.Row
"""The record of a technique as a dictionary. The class `Technique` lists its keys."""
WATTS = 20_000
"""Maximum credible power of a GPU in W. As counters are slow, an interval counts 0.1 s longer."""
TECHNIQUE_PATTERN = "remedy~{remedy}/global_batch~{global_batch}"


class GpuReading(TypedDict):
    """Counters of one GPU over an interval. A counter that the driver does not report is null."""

    energy_joules: types.Amount | None
    held_back_seconds: dict[str, types.Duration]
    """Seconds of lowered clocks, by reason (`gpu_counters.REASONS`); reasons may overlap."""
    sm_mhz: types.Whole | None
    """Clock of the streaming multiprocessors in MHz, at the end of the interval."""
    celsius: types.Whole | None
    """Temperature of the GPU in °C, at the end of the interval."""


class OfRank(TypedDict):
    """Base class of measurements by one rank over a number of iterations."""

    rank: types.Whole
    iterations: types.Whole


class EpochRow(OfRank):
    """One epoch on one rank. The host's clock gives `seconds`; the GPU is idle at start and end."""

    epoch: types.Positive
    seconds: types.Seconds
    loader_seconds: types.Duration | None
    samples: types.Whole
    train_loss: types.Amount | None
    train_accuracy: types.Fraction | None
    role: types.Role
    power_capped_seconds: types.Duration | None
    """Seconds at the power limit: the maximum over the rank's GPUs; null on a CPU or if unknown."""
    gpu_readings: list[GpuReading]


class Energy(TypedDict):
    """Energy of each GPU of a rank in all warm-up or all measured epochs (`role`)."""

    rank: types.Whole
    role: types.Role
    seconds: types.Seconds
    joules: list[types.Amount | None]
    power_capped_seconds: types.Amount | None
    """Seconds at the power limit: the maximum over the rank's GPUs, but at most `seconds`."""
    counts: str
    """What the joules include."""


class Model(TypedDict):
    """The model and its costs. `parameters_sha256` has a hash of the final weights of each rank."""

    name: str
    width: types.Positive
    options: types.Row
    parameters: types.Positive | None
    gradient_bytes: types.Positive | None
    flops_per_image: types.Positive | None
    activation_bytes_per_image: NotRequired[types.Positive | None]
    parameters_sha256: list[str]


@types.opened
class Parameters(TypedDict):
    """Options of a run. `recipe_options` of a user's command has hashes of the command's files."""

    engine: str
    warmup_epochs: types.Whole
    measured_epochs: types.Positive
    recipe_options: types.Row
    recipe_applied: types.Row | None
    cpu_threads: types.Positive
    command: NotRequired[str]


class Evaluation(TypedDict):
    """Metrics on the test set after the last epoch. A loss is null if unknown or not finite."""

    test_loss: types.Amount | None
    test_accuracy: types.Fraction


class Memory(TypedDict):
    """Peak memory per GPU and a GPU's capacity (bytes); on a CPU, per process and the host's."""

    kind: Literal["device", "host"] | None
    peak_bytes: list[types.Whole]
    capacity_bytes: types.Amount | None


class Reading(OfRank):
    """Seconds of communication in a number of iterations; `note` says why seconds are missing."""

    estimate: Literal["without_communication", "profiler", "ddp_log"]
    communication_seconds: NotRequired[types.Duration]
    exposed_seconds: NotRequired[types.Number]
    overlapped_seconds: NotRequired[types.Duration]
    start_skew_seconds: NotRequired[types.Duration]
    note: NotRequired[str]


class Communication(TypedDict):
    """How gradients were exchanged: bytes of each DDP bucket, and seconds measured by each rank."""

    backend: str | None
    bucket_bytes: list[types.Whole]
    sent_share: types.Amount | None
    """Bytes sent for gradients, divided by the bytes that the strategy would send in float32."""
    readings: list[Reading]


class InMemory(OfRank):
    """Seconds of each block of iterations on images in memory, with and without gradient exchange.
    Blocks with and without exchange alternate in the order `instruments.steps.IN_TURN`.
    """

    samples: types.Whole | None
    seconds: types.Repeats
    seconds_without_exchange: types.Repeats | None


KernelClass = Literal["products", "element-wise", "optimizer", "copies", "other", "communication"]
"""The class of a GPU kernel. It depends on the operator that launches the kernel."""
OfClass = Annotated[dict[Literal["seconds", "running_seconds", "bytes"], types.Amount], Len(2, 3)]
"""`running_seconds`: seconds in which kernels of the class run. `seconds`: those of them in which
no kernel of a class listed earlier in `KernelClass` runs. `bytes`: memory traffic, if known."""


class DeviceTime(OfRank):
    """Busy seconds of a GPU in a number of iterations; `note` says why seconds are missing."""

    gpu: NotRequired[types.Whole]
    seconds: NotRequired[types.Seconds]
    busy_seconds: NotRequired[types.Duration]
    compute_seconds: NotRequired[types.Duration]
    kernels: NotRequired[types.Whole]
    classes: NotRequired[dict[KernelClass, OfClass]]
    note: NotRequired[str]


class Run(types.Record):
    """The record of one run of the grid, in the file `run.json`. Unmeasured values are null."""

    cell: Cell
    status: types.Status
    message: str | None
    """One sentence about a failure or a peculiarity of the run, or null."""
    dataset: types.Dataset | types.OwnData
    model: Model
    training: Parameters
    epochs: list[EpochRow]
    energy: NotRequired[list[Energy]]
    evaluation: Evaluation | None
    settling: types.Row
    """Keys `drift` (slowdown of measured epochs, as a fraction) and `settled` (steady or not)."""
    memory: Memory
    communication: Communication
    in_memory: list[InMemory]
    device_time: list[DeviceTime]
    startup: Startup | None
    run_seconds: types.Seconds | None
    """Seconds from the launch, after waiting for GPUs, to the end of the last process."""


class Technique(types.Record):
    """The record of the technique named `remedy` at one global batch, in the file `runs.json`."""

    remedy: str
    global_batch: types.Positive
    options: types.Row
    status: types.Status
    message: str | None
    training: types.Row
    """Settings that all techniques of a study share, as in `large_batches.plan.Study`."""
    dataset: types.Counted
    result: types.Row | None
    """Best factor on the learning rate, and all trainings; null if `status` is not "ok"."""


def technique_path(records: Path, remedy: str, global_batch: int) -> Path:
    """Return the path of the record of the technique named `remedy`, below the folder `records`."""
    pattern = f"{TECHNIQUE_PATTERN}/runs.json"
    return records / pattern.format(remedy=remedy, global_batch=global_batch)


def _consistent(record: RunRecord) -> RunRecord:
    """Return `record`; raise ValueError if its epochs, samples, waits or weights are impossible.
    Records of a user's command are not checked.
    """
    rows, complete = record["epochs"], record["status"] in ("ok", "diverged")
    if record["training"]["engine"] == "command":
        return record
    processes = len({row["rank"] for row in rows})
    places = [(row["epoch"], row["rank"]) for row in rows]
    epochs = range(1, max(places, default=(0, 0))[0] * complete + 1)
    wanted = [(epoch, rank) for epoch in epochs[: len(rows)] for rank in range(processes)]
    if places != (wanted or sorted({*places})):
        raise ValueError("epochs or their ranks are missing, twice, or out of order")
    if complete and not any(row["role"] == "measured" for row in rows):
        raise ValueError("no epoch is measured")
    samples: Counter[int] = Counter()
    for row in rows if complete else ():
        samples[row["epoch"]] += row["samples"]
        if (row["loader_seconds"] or 0) > row["seconds"]:
            raise ValueError(f"epoch {row['epoch']} waits for longer than it takes")
    # The sampler gives all ranks the same number, so some images twice.
    images = record["dataset"]["train_images"]
    if not all(0 <= number - images < processes for number in samples.values()):
        raise ValueError("an epoch has not the samples that the training set has")
    if complete and len(record["model"]["parameters_sha256"]) != processes:
        raise ValueError("not every rank's weights")
    return record


def _credible(record: RunRecord) -> RunRecord:
    """Return `record`; ValueError if a GPU exceeds `WATTS` or epochs take over `run_seconds`."""
    rows, ranks = record["epochs"], {row["rank"] for row in record["epochs"]}
    known = [(row["seconds"], row["joules"]) for row in record.get("energy", ())]
    known += [(row["seconds"], [x["energy_joules"] for x in row["gpu_readings"]]) for row in rows]
    if any(max(filter(None, js), default=0) > WATTS * (seconds + 0.1) for seconds, js in known):
        raise ValueError(f"a GPU takes more than {WATTS:,} W")
    took = [sum(row["seconds"] for row in rows if row["rank"] == rank) for rank in ranks]
    limit = record["run_seconds"] if record["status"] == "ok" else None
    if limit and max(took, default=0) > limit + 1e-6:
        raise ValueError("run_seconds is less than the seconds of its epochs")
    return record


RUN = types.Kind("a run", Annotated[Run, AfterValidator(_credible), AfterValidator(_consistent)])
TECHNIQUE = types.Kind("a technique for large batches", Technique)
