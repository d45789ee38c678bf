"""Communication seconds per epoch of every multi-GPU cell, from the seconds per epoch."""

import argparse
from pathlib import Path

from scaling import tables
from scaling.communication import communication
from scaling.errors import run_script
from scaling.timing import COLUMNS


def main(argv: list[str] | None = None) -> None:
    """Write communication.csv: one row per multi-GPU cell and estimate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--timing", type=Path, required=True, help="timing.csv of the study")
    parser.add_argument("--output", type=Path, required=True, help="communication.csv to write")
    args = parser.parse_args(argv)
    tables.write(communication(tables.read(args.timing, COLUMNS)), args.output)


if __name__ == "__main__":
    run_script(main)
