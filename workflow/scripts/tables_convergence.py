"""What the techniques for large batches gave: runs, epochs, loss curves, comparisons, times."""

import argparse
from pathlib import Path

from scaling.core.errors import run_script
from scaling.core.records import read_convergence
from scaling.tables import schema
from scaling.tables.experiments import convergence
from scaling.tables.experiments.remedies import remedies
from scaling.tables.experiments.time_to_accuracy import time_to_accuracy


def main(argv: list[str] | None = None) -> None:
    """Write the tables of convergence; without a record they have no rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--records", type=Path, nargs="*", default=[], help="of convergence_train.py")
    add("--study", required=True, help="name of the study, whose timing.csv has the epochs' times")
    add("--tables", type=Path, required=True, help="folder of all tables")
    add("--margin", type=float, required=True, help="a loss of accuracy that closes no gap")
    args = parser.parse_args(argv)
    documents = [read_convergence(path) for path in args.records]
    runs, epochs = convergence.runs(documents), convergence.epochs(documents)
    timing = schema.read_all(["timing"], args.tables, args.study)["timing"]
    tables = {
        "convergence": runs,
        "convergence_epochs": epochs,
        "loss_curves": convergence.curves(documents),
        "remedies": remedies(runs, args.margin),
        "time_to_accuracy": time_to_accuracy(runs, epochs, timing, args.margin),
    }
    schema.write_all(tables, args.tables)


if __name__ == "__main__":
    run_script(main)
