"""How long a fixed test accuracy takes with each remedy, by what an epoch was measured to take."""

import argparse
from pathlib import Path

from scaling import result_tables, tables
from scaling.convergence.time_to_accuracy import time_to_accuracy
from scaling.errors import run_script


def main(argv: list[str] | None = None) -> None:
    """Write time_to_accuracy.csv."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--runs", type=Path, required=True, help="convergence.csv")
    add("--epochs", type=Path, required=True, help="convergence_epochs.csv")
    add("--timing", type=Path, required=True, help="timing.csv of the study")
    add("--margin", type=float, required=True, help="target: so far below the reference's accuracy")
    add("--output", type=Path, required=True, help="time_to_accuracy.csv")
    args = parser.parse_args(argv)
    table = time_to_accuracy(
        result_tables.read("convergence", args.runs),
        result_tables.read("convergence_epochs", args.epochs),
        result_tables.read("timing", args.timing),
        args.margin,
    )
    tables.write(table, args.output)


if __name__ == "__main__":
    run_script(main)
