"""Draw one figure of a study as SVG, from its tables or from the record of a quantized variant."""

import argparse
import importlib
from pathlib import Path

import pandas as pd

from scaling.core.errors import UserError, run_script
from scaling.core.quantization_records import read_variants
from scaling.figures import style
from scaling.figures.registry import FIGURES
from scaling.tables import schema


def _read(table: str, folder: Path, study: str) -> pd.DataFrame:
    found = schema.read(table, schema.TABLES[table].path(folder, study))
    # A table of all studies may have rows of others.
    is_shared = "study" in found and schema.TABLES[table].scope != "study"
    return schema.of_study(found, study) if is_shared else found


def main(argv: list[str] | None = None) -> None:
    """Write the figure: the same bytes for the same tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--figure", choices=list(FIGURES), required=True, help="which figure to draw")
    add("--study", help="the study to draw (of figures from tables)")
    add("--tables", type=Path, help="folder of the tables, such as results/tables")
    add(
        "--record",
        type=Path,
        nargs="?",
        help="what quantize_evaluate.py --histograms wrote (of quantization_histograms); "
        "none without Part B",
    )
    add("--output", type=Path, required=True, help="the SVG file to write")
    arguments = parser.parse_args(argv)
    name, folder, study = arguments.figure, arguments.tables, arguments.study
    figure = FIGURES[name]
    if figure.tables and not (folder and study):
        raise UserError(f"the figure {name} is drawn from tables; give --tables and --study")
    draw = getattr(importlib.import_module(figure.module), f"draw_{name}")
    with style.style(name):
        if figure.tables:
            drawn = draw(*(_read(table, folder, study) for table in figure.tables))
        else:
            drawn = draw(read_variants([arguments.record])[0] if arguments.record else None)
        style.save(drawn, arguments.output)


if __name__ == "__main__":
    run_script(main)
