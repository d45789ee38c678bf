"""Draw one figure of a study as SVG, from its tables or from the record of a quantized variant."""

import importlib
from pathlib import Path

import pandas as pd

from scaling.core import command_line
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


@command_line.script
def main(
    figure: str,
    output: Path,
    study: str = "",
    tables: Path | None = None,
    record: tuple[Path, ...] = (),
) -> None:
    """Write the figure: the same bytes for the same tables.

    From the `tables` of a `study`; histograms from a `record`, none without Part B.
    """
    spec = FIGURES[figure]
    if spec.tables and not (tables and study):
        raise UserError(f"the figure {figure} is drawn from tables; give --tables and --study")
    draw = getattr(importlib.import_module(spec.module), f"draw_{figure}")
    with style.style(figure):
        if tables and spec.tables:
            drawn = draw(*(_read(table, tables, study) for table in spec.tables))
        else:
            drawn = draw(read_variants(record)[0] if record else None)
        style.save(drawn, output)


if __name__ == "__main__":
    run_script(main)
