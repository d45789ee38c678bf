"""Speedup and efficiency of every cell, in three views, from the seconds per epoch."""

import argparse
from pathlib import Path

from scaling import tables
from scaling.errors import run_script
from scaling.speedup import speedup
from scaling.timing import COLUMNS


def main(argv: list[str] | None = None) -> None:
    """Write speedup.csv: one row per cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--timing", type=Path, required=True, help="timing.csv of the study")
    parser.add_argument("--output", type=Path, required=True, help="speedup.csv to write")
    args = parser.parse_args(argv)
    tables.write(speedup(tables.read(args.timing, COLUMNS)), args.output)


if __name__ == "__main__":
    run_script(main)
