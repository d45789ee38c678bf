"""Draw figures of a study as SVG, from its tables."""

import importlib
from pathlib import Path

from scaling.core import command_line
from scaling.figures import FIGURES, style
from scaling.tables import schema


@command_line.script
def main(figures: tuple[str, ...], output: Path, tables: tuple[Path, ...] = ()) -> None:
    """Draw `figures` into the folder `output`, from `tables`; missing ones count as empty."""
    found = schema.StudyTables("", schema.read_files(tables))
    for name in figures:
        spec = FIGURES[name]
        own = [getattr(found, table) for table in spec.tables]
        draw = getattr(importlib.import_module(spec.module), f"draw_{name}")
        with style.style(name):
            style.save(draw(*own), output / f"{name}.svg")
