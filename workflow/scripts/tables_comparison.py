"""Epoch time, speedup, efficiency and bandwidth of several studies in one table."""

import argparse
from pathlib import Path

import pandas as pd

from scaling import comparison, result_tables, tables
from scaling.errors import run_script


def main(argv: list[str] | None = None) -> None:
    """Write comparison.csv: one row per cell of each study, in the order of the studies."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--studies",
        type=Path,
        nargs="+",
        required=True,
        help="folder of the tables of each study, named like it",
    )
    parser.add_argument("--output", type=Path, required=True, help="comparison.csv to write")
    args = parser.parse_args(argv)
    found = [
        comparison.of_study(
            folder.name,
            result_tables.read("speedup", folder / "speedup.csv"),
            result_tables.read("bandwidth", folder / "bandwidth.csv"),
        )
        for folder in args.studies
    ]
    tables.write(pd.concat(found, ignore_index=True), args.output)


if __name__ == "__main__":
    run_script(main)
