"""Which differences exceed noise; used by tables, claims, map and audit.

If everything compared has two runs or more (processes, of one seed or several), noise is the
variation between runs: the 95 % interval of `statistics.margin`. Else it is the variation between
epochs: the ratios of the extremes of both times, too little, as a whole process can be slower. A
judgement's `basis` says which of the two it is.
"""

import math
from collections.abc import Sequence
from statistics import stdev
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.core.statistics import CONFIDENCE, Difference, margin
from scaling.tables.communication import SUBTRACTIONS
from scaling.tables.timing import with_single_gpu

MOST_RUNS = 100
"""More runs than this are not suggested."""
LONE_INSTRUMENT = 2.0
"""Assumed uncertainty of a single instrument: half to double its value."""
WITHIN, ONE_SEED = "within one run", "of one seed unknown"


class Ratio(NamedTuple):
    """The noise interval of a ratio of times, and its `basis`; NaN for times measured once.

    If the interval contains 1, `more` further runs of each time would exclude it.
    """

    low: float
    high: float
    basis: str
    more: float = math.nan


def more_runs(distance: float, spreads: Sequence[float], runs: Sequence[float]) -> float:
    """Return how many more runs of each sample would make the margin smaller than `distance`.

    The smallest number n of runs of each of k samples with t(k (n − 1)) · √(Σ s² / n) < distance,
    which for two is Student's t with the pooled standard deviation (NIST/SEMATECH e-Handbook of
    Statistical Methods, 7.3.1). Infinite above `MOST_RUNS`.
    """
    spread = math.hypot(*spreads)
    for n in range(2, MOST_RUNS + 1):
        off = stdtrit(len(spreads) * (n - 1), (1 + CONFIDENCE) / 2) * spread / math.sqrt(n)
        if off < abs(distance):
            return max(1, n - min(runs))
    return math.inf


def repeats_for_seeds(distance: float, spreads: Sequence[float], seeds: Sequence[float]) -> Ratio:
    """Return how many more seeds would distinguish means of seeds at this `distance`."""
    if min(seeds) < 2:
        return Ratio(math.nan, math.nan, ONE_SEED)
    more = more_runs(distance, spreads, seeds)
    return Ratio(math.nan, math.nan, f"between {min(seeds)} seeds", more)


def repeats_for_margin(distance: float, off: float, runs: float) -> Ratio:
    """Return how many more runs would distinguish a value with margin `off` from one at `distance`.

    No number of runs does at a `distance` of 0 or less, as for an estimate of half to double.
    """
    if not runs > 1:
        return Ratio(math.nan, math.nan, WITHIN)
    spread = off * math.sqrt(runs) / stdtrit(runs - 1, (1 + CONFIDENCE) / 2)
    more = more_runs(max(0.0, distance), [spread], [runs])
    return Ratio(math.nan, math.nan, f"between {runs:g} runs", more)


def repeats_for_difference(found: Difference, distance: float | None = None) -> list[Ratio]:
    """Return how many more seeds would distinguish a difference from 0, or from one at `distance`.

    Unknown if a seed failed; empty for one run compared with itself.
    """
    spreads = [stdev(seeds) if len(seeds) > 1 else math.nan for seeds in found.samples]
    off = found.mean if distance is None else distance
    return [repeats_for_seeds(off, spreads, list(map(len, found.samples)))] if spreads else []


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
        more = more_runs(distance, spreads / times, runs) if abs(distance) <= off else math.nan
        said = f"between {fmt.whole_span(runs, '–')} runs"
        return Ratio(np.exp(distance - off), np.exp(distance + off), said, more)


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
    return pd.DataFrame(found, table.index, Ratio._fields)[["low", "high", "basis"]]


def repeats_needed_note(*found: Ratio) -> str:
    """Return how many more runs would decide unclear ratios, as a sentence.

    Example: ` Noise between 2 runs: 3 more would tell.`
    """
    lost = [each for each in found if not (each.low > 1 or each.high < 1)]
    alone = [each.basis or "unknown" for each in lost if math.isnan(each.more)]
    if alone or not lost:
        what = "more seeds" if alone[:1] == [ONE_SEED] else "repeats"
        return f" Noise {alone[0]}: {what} would tell." if alone else ""
    worst = max(lost, key=lambda each: each.more)
    more = f"not even {MOST_RUNS}" if math.isinf(worst.more) else f"{worst.more:.0f}"
    return f" Noise {worst.basis}: {more} more would tell."


def within(basis: Any) -> str:
    """Return `within noise`, with the number of runs if it is between runs."""
    return f"within noise {basis}" if str(basis).startswith("between") else "within noise"


def with_uncertainty(communication: pd.DataFrame, timing: pd.DataFrame) -> pd.DataFrame:
    """Add lowest, highest and resolution seconds, `within_noise` and `basis` to `communication`.

    T(N,b) - T(1,b)/N is T(N,b) · (1 - speedup/N); its lowest and highest value follow from those of
    the speedup, so a time below 0 is within noise exactly where a speedup above N is. With one run
    each they combine the extremes of both times. The resolution is the width of that interval, NaN
    for a time measured once. `within_noise` means that the interval contains 0.

    An instrument's resolution is its uncertainty, if the table has these columns: between runs the
    `margin` of `run_std_seconds`, else `spread_seconds`, the range of its repeats. For a single
    reading it is unknown: NaN, and never `within_noise`.
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
