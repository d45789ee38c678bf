"""What the machine can do at best, from its measured limits."""

import argparse
from pathlib import Path

from scaling.core import files
from scaling.core.errors import run_script
from scaling.tables import io
from scaling.tables.limits import peaks, topology


def main(argv: list[str] | None = None) -> None:
    """Write peaks.csv, one row per figure, and topology.txt, how the GPUs are connected."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peaks", type=Path, required=True, help="peaks.json of the machine")
    parser.add_argument("--output", type=Path, required=True, help="peaks.csv to write")
    parser.add_argument("--topology", type=Path, required=True, help="topology.txt to write")
    args = parser.parse_args(argv)
    document = files.read_json(args.peaks)
    io.write(peaks(document), args.output)
    files.write_text(args.topology, topology(document))


if __name__ == "__main__":
    run_script(main)
