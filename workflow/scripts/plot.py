"""Draw one figure of a study as SVG, from its tables."""

import importlib
from pathlib import Path

import pandas as pd

from scaling.core import command_line
from scaling.figures import style
from scaling.figures.registry import FIGURES
from scaling.tables import schema


def _read(table: str, folder: Path, study: str) -> pd.DataFrame:
    found = schema.read(table, schema.TABLES[table].path(folder, study))
    # A table of all studies may have rows of others.
    is_shared = "study" in found and schema.TABLES[table].scope != "study"
    return schema.of_study(found, study) if is_shared else found


@command_line.script
def main(figure: str, output: Path, study: str, tables: Path) -> None:
    """Write the figure from the `tables` of a `study`: the same bytes for the same tables."""
    spec = FIGURES[figure]
    draw = getattr(importlib.import_module(spec.module), f"draw_{figure}")
    with style.style(figure):
        style.save(draw(*(_read(table, tables, study) for table in spec.tables)), output)
