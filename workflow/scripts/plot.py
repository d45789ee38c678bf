"""Draw one figure of a study as SVG, from its tables."""

import importlib
from pathlib import Path

from scaling.core import command_line
from scaling.figures import style
from scaling.figures.registry import FIGURES
from scaling.tables import schema


@command_line.script
def main(figure: str, output: Path, study: str, tables: tuple[Path, ...]) -> None:
    """Write the figure from its `tables`, of which only rows of `study` are drawn.

    A table that the study does not have is without rows. The same tables give the same bytes.
    """
    spec, found = FIGURES[figure], schema.read_files(study, tables)
    own = [found[name] if name in found else schema.empty(name) for name in spec.tables]
    draw = getattr(importlib.import_module(spec.module), f"draw_{figure}")
    with style.style(figure):
        style.save(draw(*own), output)
