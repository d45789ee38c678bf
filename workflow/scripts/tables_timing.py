"""Seconds per epoch of every cell, from the run records."""

import argparse
from pathlib import Path

from scaling import tables
from scaling.errors import run_script
from scaling.timing import timing


def main(argv: list[str] | None = None) -> None:
    """Write timing.csv: one row per cell of the grid, its seeds pooled."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=Path, required=True, help="CSV: every run of the grid")
    parser.add_argument("--runs", type=Path, required=True, help="folder of the run records")
    parser.add_argument("--partial", action="store_true", help="accept runs without a record")
    parser.add_argument("--output", type=Path, required=True, help="timing.csv to write")
    args = parser.parse_args(argv)
    tables.write(timing(tables.read_runs(args.cells, args.runs, args.partial)), args.output)


if __name__ == "__main__":
    run_script(main)
