"""Where, when and with what every run was made, from the run records."""

import argparse
from pathlib import Path

from scaling import tables
from scaling.errors import run_script
from scaling.provenance import provenance


def main(argv: list[str] | None = None) -> None:
    """Write provenance.csv: one row per run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=Path, required=True, help="CSV: every run of the grid")
    parser.add_argument("--runs", type=Path, required=True, help="folder of the run records")
    parser.add_argument("--partial", action="store_true", help="accept runs without a record")
    parser.add_argument("--output", type=Path, required=True, help="provenance.csv to write")
    args = parser.parse_args(argv)
    tables.write(provenance(tables.read_runs(args.cells, args.runs, args.partial)), args.output)


if __name__ == "__main__":
    run_script(main)
