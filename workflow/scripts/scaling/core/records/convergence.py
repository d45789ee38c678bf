"""The record of one technique for large batches at one global batch."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

from scaling.core.records.kind import Kind, Row, Status

CONVERGENCE_PATTERN = "remedy~{remedy}/global_batch~{global_batch}"


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
    status: Status
    message: str | None
    training: dict[str, Any]
    dataset: dict[str, Any]
    result: dict[str, Any] | None
    environment: dict[str, Any]


TRAINING = Kind[Row]("a training that was kept", {"": "epochs", "epochs": "epoch updates"})
"""What `convergence.cache` keeps."""


def convergence_path(records: Path, remedy: str, global_batch: int) -> Path:
    """Return where a technique's record lies below the folder `records`."""
    return (
        records / CONVERGENCE_PATTERN.format(remedy=remedy, global_batch=global_batch) / "runs.json"
    )


def _contradictions(record: ConvergenceRecord) -> Iterator[str]:
    """Where epochs are missing or out of order."""
    for run in record["result"]["runs"] if record["result"] else ():
        numbers = [row["epoch"] for row in run["epochs"]]
        if not numbers or numbers != list(range(1, len(numbers) + 1)):
            yield f"epochs of factor {run['factor']}, seed {run['seed']} are missing, or twice"


CONVERGENCE = Kind[ConvergenceRecord](
    "a technique for large batches",
    {
        "": "remedy global_batch options status message? training dataset result? environment",
        "training": "reference_batch seeds train_images?",
        "result": "gpus rule_rate chosen_factor at_edge updates_per_epoch reference_updates runs",
        "result.runs": "factor learning_rate seed updates planned_epochs planned_updates diverged "
        "updates_per_point losses seconds chosen epochs",
        "result.runs.epochs": "epoch updates train_loss? test_loss? test_accuracy?",
    },
    contradictions=_contradictions,
)
