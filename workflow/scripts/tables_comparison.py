"""Epoch time, speedup, efficiency and bandwidth of several studies in one table."""

from pathlib import Path

import pandas as pd

from scaling.core import command_line
from scaling.published import study as published
from scaling.tables import comparison, schema


@command_line.script
def main(
    tables: Path, output: Path, measured: str | None = None, folders: tuple[Path, ...] = ()
) -> None:
    """Write comparison.csv: a row per cell of each study, the `measured` one first."""
    described = {}
    if measured:
        provenance = schema.read("provenance", tables / measured / "provenance.csv")
        described[measured] = comparison.model_and_hardware(provenance)
    for name, (_, printed) in published.by_name(folders).items():
        described[name] = (printed.model, printed.description.hardware)
    found = []
    for name, said in described.items():
        own = schema.read_all(["timing", "speedup", "bandwidth"], tables, name)
        found.append(comparison.of_study(name, own, *said))
    table = pd.concat(found, ignore_index=True) if found else schema.frame("comparison")
    schema.write("comparison", table, output)
