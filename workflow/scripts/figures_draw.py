"""Draw figures of a study as SVG, from its tables."""

from pathlib import Path

from scaling.core import command_line
from scaling.figures import FIGURES, quantization, scaling, style
from scaling.tables import schema

DRAW = vars(scaling) | vars(quantization)


@command_line.script
def main(figures: tuple[str, ...], output: Path, tables: tuple[Path, ...] = ()) -> None:
    """Draw `figures` into the folder `output`, from `tables`; missing ones count as empty."""
    found = schema.read_study("", tables)
    for name in figures:
        own = [getattr(found, table) for table in FIGURES[name].tables]
        style.save(DRAW[f"draw_{name}"], own, output / f"{name}.svg")
