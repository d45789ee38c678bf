"""Loss and accuracy of every run, epoch by epoch, from the run records."""

import argparse
from pathlib import Path

from scaling import tables
from scaling.accuracy import accuracy
from scaling.errors import run_script


def main(argv: list[str] | None = None) -> None:
    """Write accuracy.csv: one row per run and epoch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=Path, required=True, help="CSV: every run of the grid")
    parser.add_argument("--runs", type=Path, required=True, help="folder of the run records")
    parser.add_argument("--study", required=True, help="the study's name, for its own column")
    parser.add_argument("--partial", action="store_true", help="accept runs without a record")
    parser.add_argument("--output", type=Path, required=True, help="accuracy.csv to write")
    args = parser.parse_args(argv)
    runs = tables.read_runs(args.cells, args.runs, args.partial)
    tables.write(accuracy(runs, args.study), args.output)


if __name__ == "__main__":
    run_script(main)
