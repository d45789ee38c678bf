"""What the techniques for large batches gave: runs, epochs, loss curves, comparisons, times."""

from pathlib import Path

from scaling.core import command_line, files
from scaling.core.grid import CELL_KEYS
from scaling.tables import schema
from scaling.tables.experiments import convergence
from scaling.tables.experiments.remedies import remedies
from scaling.tables.experiments.time_to_accuracy import time_to_accuracy


@command_line.script
def main(study: str, tables: Path, margin: float, records: tuple[Path, ...] = ()) -> None:
    """Write the tables of convergence; a loss of less than `margin` closes a gap."""
    documents = [files.read_json(path) for path in records]
    runs, epochs = convergence.runs(documents), convergence.epochs(documents)
    timing, costs = schema.read_all(["timing", "costs"], tables, study).values()
    timing = timing.merge(costs[[*CELL_KEYS, "watt_hours_per_epoch"]], on=CELL_KEYS)
    found = {
        "convergence": runs,
        "convergence_epochs": epochs,
        "loss_curves": convergence.curves(documents),
        "remedies": remedies(runs, margin),
        "time_to_accuracy": time_to_accuracy(runs, epochs, timing, margin),
    }
    schema.write_all(found, tables)
