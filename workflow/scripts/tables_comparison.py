"""Compare the published studies: epoch time, speedup, efficiency and bandwidth in one table."""

from pathlib import Path

import pandas as pd

from scaling.core import command_line
from scaling.published import study as published
from scaling.tables import comparison, schema


@command_line.script
def main(tables: Path, output: Path, folders: tuple[Path, ...] = ()) -> None:
    """Write comparison.csv: a row per cell of each study."""
    found = []
    for name, (_, printed) in published.by_name(folders).items():
        own = schema.read_all(["timing", "speedup", "bandwidth"], tables, name)
        found.append(comparison.of_study(name, own, printed.model, printed.description.hardware))
    table = pd.concat(found, ignore_index=True) if found else schema.frame("comparison")
    schema.write("comparison", table, output)
