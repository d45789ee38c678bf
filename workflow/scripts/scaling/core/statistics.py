"""Confidence intervals of mean differences, verdicts, and whether times are steady."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median, stdev
from typing import Any

import numpy as np

CONFIDENCE = 0.95
STEADY = 0.02
"""Maximum slowdown or speedup, as a fraction, at which times are steady whatever the noise."""


def judge(holds: object, fails: object, between: str = "undecided") -> Any:
    """Return `supported` if `holds` is true, else `refuted` if `fails` is true, else `between`."""
    return "supported" if holds else "refuted" if fails else between


@dataclass(frozen=True)
class Difference:
    """A difference of two means, with the ends of its 95 % confidence interval (NaN if unknown)."""

    mean: float
    low: float
    high: float


def difference(one: Sequence[float], other: Sequence[float]) -> Difference:
    """Return mean(`other`) − mean(`one`), with its 95 % interval.

    The samples are treated as independent: recipes draw different crops even with equal seeds. The
    interval is NaN if a sample has fewer than 2 values, or if both samples are constant.
    """
    mean, sizes = fmean(other) - fmean(one), [len(one), len(other)]
    off = margin([stdev(one), stdev(other)], sizes) if min(sizes) > 1 else math.nan
    return Difference(mean, mean - off, mean + off)


def margin(spreads: Any, sizes: Any) -> Any:
    """Return half the width of the 95 % interval of a difference (or sum) of means.

    Along axis 0, `spreads` has the standard deviation of the values of each mean, and `sizes` the
    number of these values. The interval is Welch's t (1947) with Satterthwaite's degrees of freedom
    (1946). It is NaN if a size is below 2, or if all standard deviations are 0.
    """
    from scipy.special import stdtrit  # Not where only `drift` is asked for.

    sizes = np.asarray(sizes, float)
    parts = np.square(np.asarray(spreads, float)) / sizes
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = parts.sum(axis=0) ** 2 / (parts**2 / (sizes - 1)).sum(axis=0)
    return stdtrit(freedom, (1 + CONFIDENCE) / 2) * np.sqrt(parts.sum(axis=0))


def drift(seconds: Sequence[float]) -> tuple[float, bool]:
    """Return the slowdown of epochs over time, as a fraction, and whether their times are steady.

    slowdown = median of the last third / median of the first third − 1. noise = median |difference
    of consecutive epochs| / median of the first third (von Neumann et al. 1941). Times are steady
    if |slowdown| ≤ max(`STEADY`, noise). Fewer than 3 epochs give (NaN, False).
    """
    if len(seconds) < 3:
        return math.nan, False
    third = len(seconds) // 3
    first, last = median(seconds[:third]), median(seconds[-third:])
    noise = median(abs(after - before) for before, after in pairwise(seconds)) / first
    return last / first - 1, abs(last / first - 1) <= max(STEADY, noise)


def settling(epochs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the results of `drift` for measured epochs, each with the time of its slowest rank.

    The keys are `drift` (slowdown; None for fewer than 3 epochs) and `settled` (steady or not).
    """
    seconds: dict[int, float] = {}
    for row in epochs:
        if row["role"] == "measured":
            seconds[row["epoch"]] = max(seconds.get(row["epoch"], 0.0), row["seconds"])
    change, settled = drift(list(seconds.values()))
    return {"drift": None if math.isnan(change) else change, "settled": settled}
