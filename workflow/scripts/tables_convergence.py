"""What the techniques for large batches gave: runs, epochs, loss curves, comparisons, times."""

from pathlib import Path

from scaling.core import command_line
from scaling.core.grid import CELL_KEYS
from scaling.core.records.convergence import CONVERGENCE
from scaling.core.records.run import RUN
from scaling.tables import schema
from scaling.tables.experiments import convergence
from scaling.tables.experiments.full_trainings import full_trainings, trained_to_accuracy
from scaling.tables.experiments.images_to_accuracy import images_to_accuracy, noise_scale
from scaling.tables.experiments.remedies import remedies
from scaling.tables.experiments.time_to_accuracy import time_to_accuracy, timed_with_sgd


@command_line.script
def main(
    study: str,
    tables: Path,
    margin: float,
    records: tuple[Path, ...] = (),
    accuracies: tuple[float, ...] = (),
    trainings: tuple[Path, ...] = (),
    timed: tuple[Path, ...] = (),
    target: float = 1.0,
) -> None:
    """Write the tables of `records`; a loss of less than `margin` closes a gap.

    And those of `trainings`, records of full trainings towards a test accuracy of `target`. Epochs
    take as long as in the tables `timed`, where the study has a grid.
    """
    if records:
        documents = [CONVERGENCE.read(path) for path in records]
        runs, epochs = convergence.runs(documents), convergence.epochs(documents)
        measured = schema.StudyTables(study, schema.read_files(study, timed), "", {})
        costs = measured.costs[[*CELL_KEYS, "watt_hours_per_epoch"]]
        timing = measured.timing.merge(costs, on=CELL_KEYS)
        sgd = timed_with_sgd(timing, measured.provenance)
        found = {
            "convergence": runs,
            "convergence_epochs": epochs,
            "loss_curves": convergence.curves(documents),
            "remedies": remedies(runs, margin),
            "time_to_accuracy": time_to_accuracy(runs, epochs, sgd, margin),
            "images_to_accuracy": images_to_accuracy(documents, accuracies),
            "noise_scale": noise_scale(documents),
        }
        schema.write_all(found, tables)
    if trainings:
        full = full_trainings([RUN.read(path) for path in trainings], target)
        found = {"full_trainings": full, "trained_to_accuracy": trained_to_accuracy(full)}
        schema.write_all(found, tables)
