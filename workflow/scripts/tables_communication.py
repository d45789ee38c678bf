"""Communication seconds per epoch of every multi-GPU cell, from the seconds per epoch."""

import argparse
from pathlib import Path

from scaling.core.errors import run_script
from scaling.tables import io, readings, timing
from scaling.tables.communication import communication


def main(argv: list[str] | None = None) -> None:
    """Write communication.csv: one row per multi-GPU cell and estimate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--timing", type=Path, required=True, help="timing.csv of the study")
    parser.add_argument("--readings", type=Path, help="readings.csv, where instruments ran")
    parser.add_argument("--output", type=Path, required=True, help="communication.csv to write")
    args = parser.parse_args(argv)
    read = io.read(args.readings, readings.COLUMNS) if args.readings else None
    table = communication(io.read(args.timing, timing.COLUMNS), read)
    io.write(table, args.output)


if __name__ == "__main__":
    run_script(main)
