"""How long a fixed test accuracy takes with each remedy, by what an epoch was measured to take."""

import argparse
from pathlib import Path

from scaling.core.errors import run_script
from scaling.tables import io, schema
from scaling.tables.experiments.time_to_accuracy import time_to_accuracy


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
        schema.read("convergence", args.runs),
        schema.read("convergence_epochs", args.epochs),
        schema.read("timing", args.timing),
        args.margin,
    )
    io.write(table, args.output)


if __name__ == "__main__":
    run_script(main)
