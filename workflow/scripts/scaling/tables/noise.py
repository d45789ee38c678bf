"""Which differences exceed noise; used by tables, claims, map and audit.

If everything compared has two runs or more (processes, of one seed or several), noise is the
variation between runs: the 95 % interval of `statistics.margin`. Else it is the variation between
epochs: the ratios of the extremes of both times, too little, as a whole process can be slower. A
judgement's `basis` says which of the two it is.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.core.statistics import margin
from scaling.tables.communication import SUBTRACTIONS
from scaling.tables.timing import with_single_gpu

LONE_INSTRUMENT = 2.0
"""Assumed uncertainty of a single instrument: half to double its value."""
WITHIN = "within one run"


class Ratio(NamedTuple):
    """The noise interval of a ratio of times, and its `basis`; NaN for times measured once."""

    low: float
    high: float
    basis: str


def ratio(above: Sequence[Any], below: Sequence[Any], seconds: str = "epoch_seconds") -> Ratio:
    """Return the noise interval of the product of some cells' times over that of others.

    The cells are rows of a timing table; without a column `runs`, each time is of one run. Between
    runs, logarithms are compared, whose standard deviations are the relative ones.
    """
    rows, runs = [*above, *below], [getattr(row, "runs", 1) for row in (*above, *below)]
    if not min(row.count for row in rows) > 1:
        return Ratio(math.nan, math.nan, "")
    times, shortest, longest, spreads = (
        np.array([getattr(row, seconds + end, math.nan) for row in rows], float)
        for end in ("", "_min", "_max", "_run_std")
    )
    over = len(above)
    # A time without loading may be 0.
    with np.errstate(all="ignore"):
        off = margin(spreads / times, runs)
        if math.isnan(off):
            low, high = shortest[:over].prod() / longest[over:].prod(), longest[:over].prod()
            return Ratio(low, high / shortest[over:].prod(), WITHIN)
        distance = np.log(times[:over]).sum() - np.log(times[over:]).sum()
        said = f"between {fmt.whole_span(runs, '–')} runs"
        return Ratio(np.exp(distance - off), np.exp(distance + off), said)


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
    found = [ratio([own], [base], seconds) for own, base in zip(*sides, strict=True)]
    return pd.DataFrame(found, table.index, Ratio._fields)


def within(basis: Any) -> str:
    """Return `within noise`, with the number of runs if it is between runs."""
    return f"within noise {basis}" if str(basis).startswith("between") else "within noise"


def with_uncertainty(communication: pd.DataFrame, timing: pd.DataFrame) -> pd.DataFrame:
    """Add lowest, highest and resolution seconds, `within_noise` and `basis` to `communication`.

    T(N,b) - T(1,b)/N is T(N,b) · (1 - speedup/N): its ends follow from those of the speedup. With
    one run each they combine the extremes of both times. The resolution is the width of that
    interval, NaN for a time measured once; `within_noise` means that it contains 0. An instrument's
    resolution is between runs the `margin` of `run_std_seconds`, else `spread_seconds`, the range
    of its repeats, and NaN for a single reading.
    """
    several = with_single_gpu(timing[timing["gpus"] > 1], timing, "batch_size")
    gpus, found = several["gpus"], []
    for estimate, seconds in SUBTRACTIONS.items():
        ends = ratios(several, "single_", "", seconds)
        own = several[CELL_KEYS].assign(estimate=estimate, basis=ends["basis"])
        for name, end, most in (("lowest", "high", "max"), ("highest", "low", "min")):
            single = several[f"single_{seconds}_{most}"] / gpus
            paired = several[f"{seconds}_{'min' if most == 'max' else 'max'}"] - single
            between = several[seconds] * (1 - ends[end] / gpus)
            own[f"{name}_seconds"] = paired.where(ends["basis"] == WITHIN, between).astype(float)
        found.append(own)
    table = communication.merge(pd.concat(found), how="left", on=[*CELL_KEYS, "estimate"])
    resolution = table["highest_seconds"] - table["lowest_seconds"]
    if "spread_seconds" in table:
        off = margin([table["run_std_seconds"]], [table["runs"]])
        off = table["spread_seconds"].where(np.isnan(off), off)
        resolution, measured = resolution.fillna(off), table["communication_seconds"]
        table["lowest_seconds"] = table["lowest_seconds"].fillna(measured - off)
        table["highest_seconds"] = table["highest_seconds"].fillna(measured + off)
    around = (table["lowest_seconds"] <= 0) & (table["highest_seconds"] >= 0)
    return table.assign(resolution_seconds=resolution, within_noise=around)
