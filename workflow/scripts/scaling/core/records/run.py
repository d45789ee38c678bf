"""The record of a run of the grid: its fields, and what they may not contradict."""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, NotRequired, TypedDict, get_args

from scaling.core.records.kind import Kind, Role, Status

PHASES = ["launch", "imports", "join", "dataset", "recipe"]
"""The phases of a run's start-up; see `scaling.launch.startup_clock`."""
STEADY = 0.02
"""The largest drift, as a share, of epochs that have settled whatever their noise."""
CAPACITY = r"total capacity of ([\d.]+) GiB"
"""What a GPU's memory holds, as PyTorch says where that was too little."""


class GpuReading(TypedDict):
    """One GPU over a span of time; null is what its driver does not tell.

    `energy_joules` it took and `held_back_seconds` by each reason that is counted; `sm_mhz` and
    `celsius` at the end. At its power limit a driver lowers the clocks: the same work takes longer
    than on a GPU that has only begun to work. An H200 counts in steps of 0.1 s.
    """

    energy_joules: float | None
    held_back_seconds: dict[str, float]
    sm_mhz: int | None
    celsius: int | None


class EpochRow(TypedDict):
    """One epoch as one rank saw it. Seconds are host seconds between device synchronisations.

    `power_capped_seconds`: for how long one of its GPUs was held back by its power limit, as the
    driver counts it; null where none does. `gpu_readings` are those of its GPUs over the epoch;
    empty on a CPU, and in records made before they were read.
    """

    epoch: int
    rank: int
    role: Role
    seconds: float
    loader_seconds: float
    iterations: int
    samples: int
    train_loss: float | None
    train_accuracy: float | None
    power_capped_seconds: float | None
    gpu_readings: list[GpuReading]


class RunRecord(TypedDict):
    """The record of one run of the grid, `run.json`.

    `cell` as `grid.Cell`; `message` one sentence for a status other than ok; `model` with what
    `training.evaluation` counts, and the SHA-256 of each rank's parameters; `training` every
    parameter, in `recipe_applied` the recipe's options as they could be applied, in
    `compiled_graphs` how many graphs came from the cache and how many were compiled; `settling` as
    `drift` says; `communication` with the bytes of each message of gradients; `readings`,
    `in_memory` and `device_time` of each rank as `scaling.instruments.communication` has them;
    `environment` as `core.environment` has it. `startup`: seconds of `PHASES` and their total.
    `run_seconds`: from the start of the command to the end of its last process, without the wait
    for GPUs; `shutdown_seconds` of them after the last report. Null is what a run did not reach.
    `measured_as`: the strategy of the run that this one shares its measurement with.
    """

    cell: dict[str, Any]
    status: Status
    message: str | None
    dataset: dict[str, Any]
    model: dict[str, Any]
    training: dict[str, Any]
    epochs: list[EpochRow]
    evaluation: dict[str, float] | None
    settling: dict[str, Any]
    memory: dict[str, Any]
    communication: dict[str, Any]
    environment: dict[str, Any]
    in_memory: list[dict[str, Any]]
    device_time: list[dict[str, Any]]
    startup: dict[str, float] | None
    run_seconds: float | None
    shutdown_seconds: float | None
    measured_as: NotRequired[str]


def upgrade(record: Any) -> RunRecord:
    """Give a record made before something was measured what one that did not measure it has.

    In place. All that a device did was to compute where it did not communicate.
    """
    record["cell"].setdefault("repeat", 0)
    for key in ("startup", "run_seconds", "shutdown_seconds"):
        record.setdefault(key, None)
    for key in ("flops_per_image", "activation_bytes_per_image"):
        record["model"].setdefault(key, None)
    for key in ("recipe_applied", "compiled_batch_sizes", "compiled_graphs"):
        record["training"].setdefault(key, None)
    record["communication"].setdefault("readings", [])
    for epoch in record["epochs"]:
        epoch.setdefault("power_capped_seconds", None)
        epoch.setdefault("gpu_readings", [])
    record.setdefault("settling", settling(record["epochs"]))
    record["model"].setdefault("options", {})
    record["dataset"].setdefault("image_shape", [32, 32, 3])
    told = re.search(CAPACITY, record["message"] or "")
    record["memory"].setdefault("capacity_bytes", float(told[1]) * 2**30 if told else None)
    alone = record["cell"]["gpus"] == 1
    for rank in record.setdefault("device_time", []):
        if "busy_seconds" in rank:
            rank.setdefault("compute_seconds", rank["busy_seconds"] if alone else math.nan)
    record.setdefault("in_memory", _in_memory(record))
    upgraded: RunRecord = record
    return upgraded


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


def settling(epochs: list[EpochRow]) -> dict[str, Any]:
    """The `drift` of the measured epochs, each as long as its slowest rank's, and `settled`."""
    seconds: dict[int, float] = {}
    for row in epochs:
        if row["role"] == "measured":
            seconds[row["epoch"]] = max(seconds.get(row["epoch"], 0.0), row["seconds"])
    change, settled = drift(list(seconds.values()))
    return {"drift": None if math.isnan(change) else change, "settled": settled}


def _in_memory(record: Any) -> list[dict[str, Any]]:
    """What older instruments found of it, each for itself: with and without exchange, or traced."""
    found: dict[int, dict[str, Any]] = {}
    for rank in record["device_time"]:
        if rank["iterations"]:
            found[rank["rank"]] = {**rank, "seconds": [rank["seconds"]], "seconds_without": None}
    for rank in record["communication"]["readings"]:
        if "seconds_without" in rank:
            found[rank["rank"]] = rank
    return [
        {
            **{key: rank[key] for key in ("rank", "iterations", "seconds")},
            "samples": None,
            "seconds_without_exchange": rank["seconds_without"],
        }
        for rank in found.values()
    ]


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


RUN = Kind[RunRecord](
    "a run",
    {
        "": "cell status message? dataset model training epochs memory communication environment",
        "cell": "recipe strategy gpus batch_size seed repeat",
        "dataset": "train_images",
        "model": "name width parameters?",
        "training": "learning_rate momentum weight_decay crop_padding horizontal_flip "
        "warmup_epochs measured_epochs recipe_options cpu_threads",
        "epochs": "epoch rank role seconds loader_seconds iterations samples train_loss? "
        "train_accuracy?",
        "memory": "peak_bytes",
        "startup": " ".join([*PHASES, "total"]),
        "communication.readings": "estimate rank iterations",
        "in_memory": "rank iterations seconds seconds_without_exchange?",
        "device_time": "rank iterations",
    },
    upgrade,
    _contradictions,
)
