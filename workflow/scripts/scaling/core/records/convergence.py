"""The record of one large-batch technique at one global batch."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NotRequired

from typing_extensions import TypedDict

from scaling.core.records.kind import (
    Amount,
    As,
    Dataset,
    Fraction,
    Kind,
    Options,
    Positive,
    Record,
    Row,
    Seconds,
    Status,
    Whole,
    of_images,
    opened,
)

CONVERGENCE_PATTERN = "remedy~{remedy}/global_batch~{global_batch}"


@opened
class Figures(TypedDict):
    """Metrics after an epoch, of a technique's record those by the statistics that all use."""

    epoch: Positive
    updates: Positive
    train_loss: Amount | None
    train_accuracy: Fraction | None
    test_loss: NotRequired[Amount | None]
    test_accuracy: NotRequired[Fraction | None]
    validation_accuracy: NotRequired[Fraction | None]


@opened
class Training(TypedDict):
    """A training as `convergence.experiment` describes it."""

    seed: Whole
    updates: Positive
    planned_epochs: Positive
    planned_updates: Positive
    diverged: str
    seconds: Seconds
    epochs: list[Figures]


class Run(Training):
    """A training in a technique's record."""

    factor: Seconds
    """Learning rate relative to the scaling rule's."""
    learning_rate: Amount
    held_out: bool
    chosen: bool


@opened
class Result(TypedDict):
    """The results of a technique's runs; see `convergence.experiment`."""

    gpus: Positive
    chosen_factor: Amount
    at_edge: bool
    runs: list[Run]


@opened
class Shared(TypedDict):
    """Settings shared by all runs of a study; see `convergence.plan.Study`."""

    reference_batch: Positive
    seeds: list[Whole]
    train_images: Positive | None


class ConvergenceRecord(Record):
    """The record of one technique ("remedy") at one global batch, `runs.json`.

    `options` are those of `Technique`; a status other than ok has a message and no result.
    """

    remedy: str
    global_batch: Positive
    options: Options
    status: Status
    message: str | None
    training: Annotated[Row, As(Shared)]
    dataset: Annotated[Row, As(Dataset)]
    result: Annotated[Row | None, As(Result | None)]


def convergence_path(records: Path, remedy: str, global_batch: int) -> Path:
    """Return the path of a technique's record below the folder `records`."""
    place = CONVERGENCE_PATTERN.format(remedy=remedy, global_batch=global_batch)
    return records / place / "runs.json"


def _contradictions(record: ConvergenceRecord) -> Iterator[str]:
    """Yield where runs are not as planned, or accuracies are not those of the test images."""
    result = record["result"]
    if not result:
        return
    chosen = {run["factor"] for run in result["runs"] if run["chosen"]}
    if result["chosen_factor"] not in chosen:
        yield "the chosen factor is that of no chosen run"
    for run in result["runs"]:
        where = f"of factor {run['factor']}, seed {run['seed']}"
        numbers = [row["epoch"] for row in run["epochs"]]
        if not numbers or numbers != list(range(1, len(numbers) + 1)):
            yield f"epochs {where} are missing, or twice"
        made = run["epochs"][-1]["epoch"], run["epochs"][-1]["updates"], run["updates"]
        planned = run["planned_epochs"], run["planned_updates"], run["planned_updates"]
        if (made != planned and not run["diverged"]) or made[1] != made[2]:
            yield f"epochs or updates {where} are not as planned"
        images = record["dataset"]["test_images"]
        if not all(of_images(row["test_accuracy"], images) for row in run["epochs"]):
            yield f"a test accuracy {where} is not that of its images"


TRAINING = Kind[Row]("a training that was kept", Training)
"""The record that `convergence.experiment` keeps for the next technique."""
CONVERGENCE = Kind[ConvergenceRecord](
    "a technique for large batches", ConvergenceRecord, _contradictions
)
