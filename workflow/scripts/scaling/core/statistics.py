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
"""Relative drift up to which times are steady, whatever the noise."""


def judge(holds: object, fails: object, between: str = "undecided") -> Any:
    """Return `supported` if `holds` is true, else `refuted` if `fails` is true, else `between`."""
    return "supported" if holds else "refuted" if fails else between


@dataclass(frozen=True)
class Difference:
    """A difference of two means with the ends of its 95 % confidence interval.

    The ends are NaN if the interval cannot be computed.
    """

    mean: float
    low: float
    high: float


def difference(*samples: Sequence[float]) -> Difference:
    """Return the mean of the second sample minus the mean of the first, with its interval.

    A single sample gives its mean. Samples count as independent, because recipes draw different
    crops even with equal seeds. The interval is NaN if a sample has fewer than 2 values, or if
    two samples have no variance.
    """
    mean = fmean(samples[-1]) - (fmean(samples[0]) if len(samples) > 1 else 0.0)
    sizes, off = list(map(len, samples)), math.nan
    if min(sizes) > 1:
        equal = len(samples) == 1 and np.ptp(samples[0]) == 0
        off = 0.0 if equal else margin(list(map(stdev, samples)), sizes)
    return Difference(mean, mean - off, mean + off)


def margin(spreads: Any, sizes: Any) -> Any:
    """Return half the width of the 95 % interval of a difference (or sum) of means.

    `spreads` are standard deviations, [samples] or [samples, rows]; `sizes` are numbers of values.
    The interval is Welch's t (1947) with Satterthwaite's degrees of freedom (1946), or NaN.
    """
    from scipy.special import stdtrit  # Not where only `drift` is asked for.

    sizes = np.asarray(sizes, float)
    parts = np.square(np.asarray(spreads, float)) / sizes
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = parts.sum(axis=0) ** 2 / (parts**2 / (sizes - 1)).sum(axis=0)
    return stdtrit(freedom, (1 + CONFIDENCE) / 2) * np.sqrt(parts.sum(axis=0))


def drift(seconds: Sequence[float]) -> tuple[float, bool]:
    """Return the slowdown from the first to the last third of epochs, and whether times are steady.

    The slowdown is a fraction of the first third's median. Times are steady if it is at most
    `STEADY` or the noise, which is the median difference of consecutive epochs, as a fraction too
    (von Neumann et al. 1941). Below 3 epochs: NaN, False.
    """
    if len(seconds) < 3:
        return math.nan, False
    third = len(seconds) // 3
    first, last = median(seconds[:third]), median(seconds[-third:])
    noise = median(abs(after - before) for before, after in pairwise(seconds)) / first
    return last / first - 1, abs(last / first - 1) <= max(STEADY, noise)


def settling(epochs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the slowdown (`drift`) of measured epochs, and whether times are steady (`settled`).

    The time of an epoch is that of its slowest rank.
    """
    seconds: dict[int, float] = {}
    for row in epochs:
        if row["role"] == "measured":
            seconds[row["epoch"]] = max(seconds.get(row["epoch"], 0.0), row["seconds"])
    change, settled = drift(list(seconds.values()))
    return {"drift": None if math.isnan(change) else change, "settled": settled}
