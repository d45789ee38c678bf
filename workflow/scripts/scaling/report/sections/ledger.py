"""How the report's tables show the ledger of layers: a line per layer, over all seeds."""

from collections.abc import Callable

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.table import Table, TableCell, head

NO_LEDGER = "The records of this study hold no ledger of layers for a stage with "


def share(value: float) -> str:
    """A share that may be tiny, in one piece: `0 %`, `< 0.001 %`, `0.0023 %`."""
    if pd.isna(value) or value == 0:
        return "–" if pd.isna(value) else "0\u00a0%"
    return "<\u00a00.001\u00a0%" if value < 1e-5 else f"{fmt.significant(100 * value, 2)}\u00a0%"


def decibels(value: float) -> str:
    """`37.4`."""
    return fmt.significant(value)


def over_seeds(values: pd.Series, write: Callable[[float], str]) -> TableCell:
    """The mean of `values`, smallest and largest below it where they differ as written."""
    known = values.dropna().astype(float)
    if known.empty:
        return TableCell("–")
    low, high = write(known.min()), write(known.max())
    return TableCell(write(known.mean()), detail="" if low == high else f"{low} to {high}")


def range_of(rows: pd.DataFrame, name: str) -> TableCell:
    """The widest extent of a layer over the seeds, from its two columns."""
    low, high = rows[f"{name}_minimum"].min(), rows[f"{name}_maximum"].max()
    return TableCell("–" if pd.isna(low) else f"{fmt.significant(low)} to {fmt.significant(high)}")


def of_stage(layers: pd.DataFrame, stages: list[str], column: str) -> pd.DataFrame:
    """The rows of the first of `stages` that has values in `column`."""
    for stage in stages:
        rows = layers[(layers["stage"] == stage) & layers[column].notna()]
        if len(rows):
            return rows
    return layers[:0]


def layer_table(
    title: str, rows: pd.DataFrame, columns: dict[str, Callable[[pd.DataFrame], TableCell]]
) -> Table:
    """A line for each layer; `columns` makes each entry from the layer's rows, one per seed."""
    seeds = rows["seed"].nunique()
    over = f"mean over {seeds} seeds, smallest to largest below" if seeds > 1 else "one seed"
    return Table(
        title=f"{title}, stage {rows['stage'].iloc[0]} ({over})",
        columns=["layer", *columns],
        rows=[
            [head(str(layer)), *(entry(some) for entry in columns.values())]
            for layer, some in rows.groupby("layer", sort=False)
        ],
    )


def mean_of(column: str, write: Callable[[float], str]) -> Callable[[pd.DataFrame], TableCell]:
    """What makes an entry of `column` from a layer's rows."""
    return lambda rows: over_seeds(rows[column], write)
