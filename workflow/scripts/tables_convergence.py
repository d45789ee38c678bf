"""What the remedies for large batches gave: runs, epochs, loss curves, and one row per remedy."""

import argparse
from pathlib import Path

from scaling.core.errors import run_script
from scaling.core.records import read_convergence
from scaling.tables import io
from scaling.tables.experiments import convergence, remedies


def main(argv: list[str] | None = None) -> None:
    """Write convergence.csv, convergence_epochs.csv, loss_curves.csv and remedies.csv."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--records", type=Path, nargs="*", default=[], help="of convergence_train.py")
    add("--output", type=Path, required=True, help="convergence.csv: one row per run")
    add("--epochs", type=Path, required=True, help="convergence_epochs.csv: per run and epoch")
    add("--curves", type=Path, required=True, help="loss_curves.csv: training loss over updates")
    add("--remedies", type=Path, required=True, help="remedies.csv: per remedy and global batch")
    add("--margin", type=float, required=True, help="a loss of accuracy that closes no gap")
    args = parser.parse_args(argv)
    records = [read_convergence(path) for path in args.records]
    runs = convergence.runs(records)
    io.write(runs, args.output)
    io.write(convergence.epochs(records), args.epochs)
    io.write(convergence.curves(records), args.curves)
    io.write(remedies.remedies(runs, args.margin), args.remedies)


if __name__ == "__main__":
    run_script(main)
