"""All-reduce seconds and bandwidth by message size, and the line fitted through them."""

import argparse
from pathlib import Path

from scaling.core import files
from scaling.core.errors import run_script
from scaling.tables import io
from scaling.tables.interconnect import fit, interconnect


def main(argv: list[str] | None = None) -> None:
    """Write interconnect.csv, one row per message, and interconnect_fit.csv, one per sweep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--sweeps", type=Path, nargs="*", required=True, help="sweep.json of each number of GPUs"
    )
    parser.add_argument("--output", type=Path, required=True, help="interconnect.csv to write")
    parser.add_argument("--fit", type=Path, required=True, help="interconnect_fit.csv to write")
    args = parser.parse_args(argv)
    table = interconnect([files.read_json(path) for path in args.sweeps])
    io.write(table, args.output)
    io.write(fit(table), args.fit)


if __name__ == "__main__":
    run_script(main)
