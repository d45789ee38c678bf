"""Epoch time, speedup, efficiency and bandwidth of several studies in one table."""

from pathlib import Path

import pandas as pd

from scaling.core import command_line
from scaling.published import study as published
from scaling.tables import comparison, schema


def _of_study(folder: Path, model: str, hardware: str) -> pd.DataFrame:
    names = ["timing", "speedup", "bandwidth"]
    timing, speedup, bandwidth = schema.read_all(names, folder.parent, folder.name).values()
    return comparison.of_study(folder.name, timing, speedup, bandwidth, model, hardware)


@command_line.script
def main(
    tables: Path, output: Path, measured: str | None = None, folders: tuple[Path, ...] = ()
) -> None:
    """Write comparison.csv: a row per cell of each study, the `measured` one first."""
    found = []
    if measured:
        provenance = schema.read("provenance", tables / measured / "provenance.csv")
        described = comparison.model_and_hardware(provenance)
        found.append(_of_study(tables / measured, *described))
    for name, (_, printed) in published.by_name(folders).items():
        described = (printed.model, printed.description.hardware)
        found.append(_of_study(tables / name, *described))
    table = pd.concat(found, ignore_index=True) if found else schema.frame("comparison")
    schema.write("comparison", table, output)
