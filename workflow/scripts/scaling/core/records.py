"""The records of measurements: statuses, fields, and where they lie. Needs no torch."""

from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from scaling.core import files

Status = Literal["ok", "oom", "oom_host", "infeasible", "diverged", "timeout"]
Role = Literal["warmup", "measured", "instrumented"]
PHASES = ["launch", "imports", "join", "dataset", "recipe"]
"""The phases of a run's start-up; see `scaling.launch.startup_clock`."""
CONVERGENCE_PATTERN = "remedy~{remedy}/global_batch~{global_batch}"


class EpochRow(TypedDict):
    """One epoch as one rank saw it. Seconds are host seconds between device synchronisations.

    `power_capped_seconds`: for how long one of its GPUs was held back by its power limit, as the
    driver counts it; null where none does, absent from records made before it was read.
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
    power_capped_seconds: NotRequired[float | None]


class RunRecord(TypedDict):
    """The record of one run of the grid, `run.json`.

    `cell` recipe, strategy, gpus, batch_size, seed; `message` one sentence for a status other than
    ok, else null; `dataset` source, checksum, train_images, test_images; `model` name, width,
    parameters, gradient_bytes, flops_per_image (operations of training; null before the end),
    parameters_sha256 (of each rank's trained parameters; equal where gradients were averaged);
    `training` every parameter the run used, and in `recipe_applied` the recipe's options as they
    could be applied (null before the end); `evaluation` test_loss, test_accuracy or null; `memory`
    kind (device or host), peak_bytes (one per rank, may be empty); `communication` backend,
    bucket_bytes (of each message of gradients in a step, may be empty), readings (of each rank, as
    `scaling.instruments` describes them); `environment` as `scaling.environment` describes it, with
    the names and UUIDs of the GPUs the run had.

    `training` also says for which `compiled_batch_sizes` steps were compiled (null before the end);
    in records made before it did, it was the whole batches, not the last of an epoch.

    `device_time` of each rank as `scaling.instruments` describes it, absent from records made
    before it was read, and its `compute_seconds` from those made before these were told apart.

    What the run cost besides its epochs, absent from records made before it was measured:
    `startup` seconds of each phase of `scaling.startup_clock` and their total (null where a rank
    did not reach its first epoch); `run_seconds` from the start of the command to the end of its
    last process, without the wait for free GPUs before it (null for a run that was not started);
    `shutdown_seconds` the part of them after the last rank's last report (null without reports).

    `measured_as` is the strategy of the run that this one shares its measurement with, absent from
    a measurement of its own.
    """

    cell: dict[str, Any]
    status: Status
    message: str | None
    dataset: dict[str, Any]
    model: dict[str, Any]
    training: dict[str, Any]
    epochs: list[EpochRow]
    evaluation: dict[str, float] | None
    memory: dict[str, Any]
    communication: dict[str, Any]
    environment: dict[str, Any]
    device_time: NotRequired[list[dict[str, Any]]]
    startup: NotRequired[dict[str, float] | None]
    run_seconds: NotRequired[float | None]
    shutdown_seconds: NotRequired[float | None]
    measured_as: NotRequired[str]


def read_record(path: Path) -> RunRecord:
    """The record at `path`; a missing or broken file is a UserError that names it."""
    record: RunRecord = files.read_json(path)
    return record


class ConvergenceRecord(TypedDict):
    """The record of one technique ("remedy") at one global batch, `runs.json`.

    `status` ok, oom, oom_host or infeasible, and for those but ok a `message`; `options` the
    technique's (`config.technique`); `training` what all runs have in common (`convergence.plan`);
    `dataset` source, checksum and numbers of images; `result` the runs, as `convergence.experiment`
    gives them, null unless ok; `environment` as `core.environment` describes it.
    """

    remedy: str
    global_batch: int
    options: dict[str, Any]
    status: str
    message: str | None
    training: dict[str, Any]
    dataset: dict[str, Any]
    result: dict[str, Any] | None
    environment: dict[str, Any]


def convergence_path(records: Path, remedy: str, global_batch: int) -> Path:
    """Return where a technique's record lies below the folder `records`."""
    return (
        records / CONVERGENCE_PATTERN.format(remedy=remedy, global_batch=global_batch) / "runs.json"
    )


def read_convergence(path: Path) -> ConvergenceRecord:
    """Read a technique's record; a missing or broken file is a UserError that names it."""
    record: ConvergenceRecord = files.read_json(path)
    return record
