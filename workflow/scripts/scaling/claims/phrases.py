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


def shares(low: float, high: float) -> str:
    """Format a range of shares: `9.4–34 %`; with an end below 0 `≤ 34 %`, above 1 `≥ 76 %`."""
    ends = dict.fromkeys(fmt.percent(end).removesuffix(" %") for end in (low, high))
    if high < 0.0005:
        return "< 0.1 %"
    if high > 1:
        return f"≥ {fmt.percent(low)}"
    return f"≤ {fmt.percent(high)}" if low < 0 else f"{'–'.join(ends)} %"


def difference(found: Difference, unit: str = " points", of: str = "95 % interval ") -> str:
    """Format in percentage points: `−3.10 points (95 % interval −4.00 to −2.20)`."""
    if math.isnan(found.mean):
        return "unknown (a loss is not finite)"
    if math.isnan(found.low):
        return f"{fmt.points(100 * found.mean)}{unit} (no interval)"
    ends = f"{fmt.points(100 * found.low)} to {fmt.points(100 * found.high)}"
    return f"{fmt.points(100 * found.mean)}{unit} ({of}{ends})"


def spread(row: Any, quantity: str = "test_accuracy") -> str:
    """Format mean and range of an accuracy over the seeds: `71.2 % (70.9–71.5)`."""
    mean, low, high = (100 * getattr(row, f"{quantity}{end}") for end in ("", "_min", "_max"))
    ends = f" ({fmt.span(low, high)})" if low < high else ""
    return f"{fmt.significant(mean)} %{ends}"


def span_of_times(ratios: pd.Series) -> str:
    """Format the smallest and largest of some ratios: `1.83–1.98×`."""
    low, high = fmt.significant(ratios.min()), fmt.times(ratios.max())
    return high if len(ratios) == 1 else f"{low}–{high}"


def span_of_shares(shares: pd.Series) -> str:
    """Format the smallest and largest of some shares, not below 0: `10–20 %`."""
    ends = shares.clip(lower=0).agg(["min", "max"]).map(fmt.percent)
    return "–".join(ends.unique()).replace(" %–", "–")


def measured(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the rows of ok cells with a value in `column`."""
    return table[(table["status"] == "ok") & table[column].notna()]


def row_at(table: pd.DataFrame, index: Any) -> Any:
    """Return the row of `table` with this label."""
    return next(table.loc[[index]].itertuples())


def extremes(table: pd.DataFrame, column: str) -> tuple[Any, Any]:
    """Return the rows with the smallest and the largest value of `column`."""
    return row_at(table, table[column].idxmin()), row_at(table, table[column].idxmax())
