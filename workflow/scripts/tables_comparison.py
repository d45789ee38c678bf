"""Epoch time, speedup, efficiency and bandwidth of several studies in one table."""

import argparse
from pathlib import Path

import pandas as pd

from scaling.core.errors import run_script
from scaling.published import study as published
from scaling.tables import comparison, schema


def _of_study(folder: Path, model: str, hardware: str) -> pd.DataFrame:
    timing, speedup, bandwidth = (
        schema.read(name, folder / f"{name}.csv") for name in ("timing", "speedup", "bandwidth")
    )
    return comparison.of_study(folder.name, timing, speedup, bandwidth, model, hardware)


def main(argv: list[str] | None = None) -> None:
    """Write comparison.csv: one row per cell of each study, the measured one first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--tables", type=Path, required=True, help="folder with a folder of tables for each study"
    )
    parser.add_argument("--measured", help="name of the measured study, if it is compared")
    parser.add_argument(
        "--folders", type=Path, nargs="*", default=[], help="folders of published studies"
    )
    parser.add_argument("--output", type=Path, required=True, help="comparison.csv to write")
    args = parser.parse_args(argv)
    found = []
    if args.measured:
        provenance = schema.read("provenance", args.tables / args.measured / "provenance.csv")
        described = comparison.model_and_hardware(provenance)
        found.append(_of_study(args.tables / args.measured, *described))
    for name, (_, study) in published.by_name(args.folders).items():
        described = (study.model, study.description.hardware)
        found.append(_of_study(args.tables / name, *described))
    table = pd.concat(found, ignore_index=True) if found else schema.frame("comparison")
    schema.write("comparison", table, args.output)


if __name__ == "__main__":
    run_script(main)
