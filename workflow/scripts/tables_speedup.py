"""Speedup and efficiency of every cell, in three views, from the seconds per epoch."""

import argparse
from pathlib import Path

from scaling.core.errors import run_script
from scaling.tables import io
from scaling.tables.speedup import speedup
from scaling.tables.timing import COLUMNS


def main(argv: list[str] | None = None) -> None:
    """Write speedup.csv: one row per cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--timing", type=Path, required=True, help="timing.csv of the study")
    parser.add_argument("--output", type=Path, required=True, help="speedup.csv to write")
    args = parser.parse_args(argv)
    io.write(speedup(io.read(args.timing, COLUMNS)), args.output)


if __name__ == "__main__":
    run_script(main)
