"""Figures as the sentences of claims write them, and the rows that they are of."""

import math
from typing import Any

import pandas as pd

from scaling.claims.claim import BATCH
from scaling.core import numbers as fmt
from scaling.core.statistics import Difference

NO_TRACE = (
    "These records have no traced steps: measure the cells again, with "
    "`training.instrumented_iterations` above 0."
)
"""What a claim says that needs a trace, if there is none."""


def batch(cell: Any) -> str:
    """Format the batch size of a cell: `b = 512`."""
    return f"{BATCH}{cell.batch_size}"


def label(row: Any) -> str:
    """Return `tuned/ddp, 2 × 512`; one GPU has no strategy."""
    configuration = row.recipe if row.gpus == 1 else f"{row.recipe}/{row.strategy}"
    return f"{configuration}, {int(row.gpus)} × {int(row.batch_size)}"


def span_of_shares(shares: pd.Series) -> str:
    """Format the smallest and largest of some shares, not below 0: `10–20 %`."""
    ends = shares.clip(lower=0).agg(["min", "max"]).map(fmt.percent)
    return "–".join(ends.unique()).replace(" %–", "–")


def difference(found: Difference) -> str:
    """Format in percentage points: `−3.10 points (95 % interval −4.00 to −2.20)`."""
    if math.isnan(found.mean):
        return "unknown (a loss is not finite)"
    mean, low, high = (fmt.points(100 * one) for one in (found.mean, found.low, found.high))
    ends = "no interval" if math.isnan(found.low) else f"95 % interval {low} to {high}"
    return f"{mean} points ({ends})"


def spread(row: Any) -> str:
    """Format mean and range of test accuracy over the seeds: `71.2 % (70.9–71.5)`."""
    low, high = 100 * row.test_accuracy_min, 100 * row.test_accuracy_max
    ends = f" ({fmt.span(low, high)})" if low < high else ""
    return f"{fmt.significant(100 * row.test_accuracy)} %{ends}"


def span_of_times(ratios: pd.Series) -> str:
    """Format the smallest and largest of some ratios: `1.83–1.98×`."""
    low, high = fmt.significant(ratios.min()), fmt.times(ratios.max())
    return high if len(ratios) == 1 else f"{low}–{high}"


def measured(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the rows of ok cells with a value in `column`."""
    return table[(table["status"] == "ok") & table[column].notna()]


def row_at(table: pd.DataFrame, index: Any) -> Any:
    """Return the row of `table` with this label."""
    return next(table.loc[[index]].itertuples())


def extremes(table: pd.DataFrame, column: str) -> tuple[Any, Any]:
    """Return the rows with the smallest and the largest value of `column`."""
    return row_at(table, table[column].idxmin()), row_at(table, table[column].idxmax())
