"""Which differences exceed noise; used by tables and claims.

If everything compared has two runs or more (processes, of one seed or several), noise is the
variation between runs: the 95 % interval of `statistics.margin`. Else it is the variation between
epochs: the ratios of the extremes of both times, too little, as a whole process can be slower. A
judgement's `basis` says which of the two it is.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.statistics import margin

LONE_READING = 2.0
"""Assumed uncertainty of a single reading of an instrument: half to double its value."""
WITHIN = "within one run"


class Ratio(NamedTuple):
    """The noise interval of a ratio of times, and its `basis`; NaN for times measured once."""

    low: float
    high: float
    basis: str


def ratio(one: Any, other: Any, seconds: str = "epoch_seconds") -> Ratio:
    """Return the noise interval of the ratio of two cells' times.

    The cells are rows of a timing table; without a column `runs`, each time is of one run. Between
    runs, logarithms are compared, whose standard deviations are the relative ones.
    """
    rows = (one, other)
    runs = [getattr(row, "runs", 1) for row in rows]
    if not min(row.count for row in rows) > 1:
        return Ratio(math.nan, math.nan, "")
    times, shortest, longest, spreads = (
        np.array([getattr(row, seconds + end, math.nan) for row in rows], float)
        for end in ("", "_min", "_max", "_run_std")
    )
    # A time without loading may be 0.
    with np.errstate(all="ignore"):
        off = margin(spreads / times, runs)
        if math.isnan(off):
            return Ratio(shortest[0] / longest[1], longest[0] / shortest[1], WITHIN)
        whole, said = times[0] / times[1], f"between {fmt.whole_span(runs, '–')} runs"
        return Ratio(whole * np.exp(-off), whole * np.exp(off), said)


def ratios(
    table: pd.DataFrame, one: str, other: str, seconds: str = "epoch_seconds"
) -> pd.DataFrame:
    """Return the `ratio` of two times in each row of `table`: columns low, high, basis.

    The times are the columns with the prefixes `one` and `other` before their usual names.
    """
    names = [*(f"{seconds}{end}" for end in ("", "_min", "_max", "_run_std")), "runs", "count"]
    sides = [
        table[[side + name for name in names]].astype(float).set_axis(names, axis=1).itertuples()
        for side in (one, other)
    ]
    found = [ratio(own, base, seconds) for own, base in zip(*sides, strict=True)]
    return pd.DataFrame(found, table.index, Ratio._fields)
