"""What each multi-GPU cell's instruments say of its communication, from the run records."""

import argparse
from pathlib import Path

from scaling import tables
from scaling.errors import run_script
from scaling.readings import readings


def main(argv: list[str] | None = None) -> None:
    """Write readings.csv: one row per multi-GPU cell and instrument."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--cells", type=Path, required=True, help="cells.csv: every run the grid asks for")
    add("--runs", type=Path, required=True, help="the folder of run records")
    add("--partial", action="store_true", help="allow runs without a record")
    add("--output", type=Path, required=True, help="readings.csv to write")
    args = parser.parse_args(argv)
    runs = tables.read_runs(args.cells, args.runs, args.partial)
    tables.write(readings(runs), args.output)


if __name__ == "__main__":
    run_script(main)
