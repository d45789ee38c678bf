"""Columns of Part B's tables: figures over the seeds of a variant or of a layer."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.table import Column
from scaling.tables.experiments.quantization_cost import cost, difference

FLOAT32 = "float32"


def by_group(rows: pd.DataFrame, *keys: str) -> pd.DataFrame:
    """Make a line of each group, in order of appearance: its `keys`, and its `rows` by seed."""
    groups = rows.groupby(list(keys), sort=False, dropna=False)
    return pd.DataFrame([(*key, same) for key, same in groups], columns=[*keys, "rows"])


def share(value: float) -> str:
    """Write a share that may be tiny, in one piece: `0 %`, `< 0.001 %`, `0.0023 %`."""
    if pd.isna(value) or value == 0:
        return "–" if pd.isna(value) else "0\u00a0%"
    return "<\u00a00.001\u00a0%" if value < 1e-5 else f"{fmt.significant(100 * value, 2)}\u00a0%"


def over_seeds(
    label: str, column: str, write: Callable[[float], str] = fmt.significant, group: str = ""
) -> Column:
    """Show the mean of `column`, smallest and largest below it where they differ as written."""

    def extent(line: Any) -> str:
        low, high = write(line.rows[column].min()), write(line.rows[column].max())
        return "" if low == high else f"{low} to {high}"

    return Column(label, _mean(column), write, detail=extent, group=group)


def mean(label: str, column: str, write: Callable[[float], str]) -> Column:
    """Show the mean of `column` alone."""
    return Column(label, _mean(column), write)


def _mean(column: str) -> Callable[[Any], float]:
    return lambda line: line.rows[column].astype(float).mean()


def _of_cost(name: str) -> Callable[[Any], Any]:
    """A figure of what a variant costs; float32, which costs nothing, has none."""
    return lambda line: None if line.stage == FLOAT32 else getattr(cost(line.rows), name)


def _noise(line: Any) -> tuple[str, ...]:
    return ("within noise",) if cost(line.rows).within_noise else ()


ACCURACY = mean("accuracy, %", "accuracy_percent", "{:.2f}".format)
DIFFERENCE = Column(
    "difference to float32, points",
    _of_cost("difference_points"),
    fmt.points,
    detail=_of_cost("reach"),
    flags=_noise,
)
WITH_ERROR = Column(
    "difference to float32, points",
    _of_cost("difference"),
    detail=_of_cost("reach"),
    flags=_noise,
)
"""The mean difference with its standard error in one cell."""
ERROR = Column("standard error, points", _of_cost("standard_error_points"), "{:.2f}".format)
AGREEMENT = Column("same class as float32, %", _of_cost("agreement_percent"), "{:.1f}".format)


def of_seed(seed: int) -> Column:
    """Show the accuracy in one seed, and below it the difference to float32."""

    def row(line: Any) -> Any:
        return next(line.rows[line.rows["seed"] == seed].itertuples(), None)

    def to_float32(line: Any) -> str:
        found = row(line)
        own = difference(found.difference_points, found.standard_error_points)
        return "" if line.stage == FLOAT32 else own

    return Column(
        str(seed),
        lambda line: getattr(row(line), "accuracy_percent", None),
        "{:.2f}".format,
        detail=to_float32,
        missing="not evaluated",
        group="seed",
    )


def spread(line: Any) -> str:
    """Write the extent of the accuracy over the seeds."""
    low, high = cost(line.rows).accuracy_range
    return f"{low:.2f}–{high:.2f}" if len(line.rows) > 1 else "one seed"
