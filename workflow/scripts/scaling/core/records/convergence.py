"""The record of one large-batch technique at one global batch."""

from collections.abc import Iterator
from pathlib import Path
from typing import NotRequired

from typing_extensions import TypedDict

from scaling.core.records import kind as types

ConvergenceRecord = types.Row
"""A record as `Technique` describes it."""
CONVERGENCE_PATTERN = "remedy~{remedy}/global_batch~{global_batch}"


@types.opened
class Figures(TypedDict):
    """Metrics after an epoch, of a technique's record those by the statistics that all use."""

    epoch: types.Positive
    updates: types.Positive
    train_loss: types.Amount | None
    train_accuracy: types.Fraction | None
    test_loss: NotRequired[types.Amount | None]
    test_accuracy: NotRequired[types.Fraction | None]
    validation_accuracy: NotRequired[types.Fraction | None]


@types.opened
class Training(TypedDict):
    """A training as `convergence.experiment` describes it."""

    seed: types.Whole
    updates: types.Positive
    planned_epochs: types.Positive
    planned_updates: types.Positive
    diverged: str
    seconds: types.Seconds
    epochs: list[Figures]


class Run(Training):
    """A training in a technique's record."""

    factor: types.Seconds
    """Learning rate relative to the scaling rule's."""
    learning_rate: types.Amount
    held_out: bool
    chosen: bool


@types.opened
class Result(TypedDict):
    """The results of a technique's runs; see `convergence.experiment`."""

    gpus: types.Positive
    chosen_factor: types.Amount
    at_edge: bool
    runs: list[Run]


class Technique(types.Record):
    """The record of one technique ("remedy") at one global batch, `runs.json`.

    `options` are those of `Technique`; a status other than ok has a message and no result.
    """

    remedy: str
    global_batch: types.Positive
    options: types.Options
    status: types.Status
    message: str | None
    training: types.Options
    """Settings shared by all runs of a study; see `convergence.plan.Study`."""
    dataset: types.Dataset
    result: Result | None


def convergence_path(records: Path, remedy: str, global_batch: int) -> Path:
    """Return the path of a technique's record below the folder `records`."""
    place = CONVERGENCE_PATTERN.format(remedy=remedy, global_batch=global_batch)
    return records / place / "runs.json"


def _contradictions(record: ConvergenceRecord) -> Iterator[str]:
    """Yield which runs are not as planned."""
    for run in (record["result"] or {"runs": []})["runs"]:
        where = f"of factor {run['factor']}, seed {run['seed']}"
        numbers, last = [row["epoch"] for row in run["epochs"]], run["epochs"][-1]
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"epochs {where} are missing, or twice"
        planned = run["planned_epochs"], run["planned_updates"]
        made = last["epoch"], last["updates"]
        if (made != planned and not run["diverged"]) or last["updates"] != run["updates"]:
            yield f"epochs or updates {where} are not as planned"


TRAINING = types.Kind("a training that was kept", Training)
"""The record that `convergence.experiment` keeps for the next technique."""
CONVERGENCE = types.Kind("a technique for large batches", Technique, _contradictions)
