"""Intervals of differences of means, and how several tests decide together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import numpy as np
from scipy.special import stdtrit

CONFIDENCE = 0.95


def judge(holds: object, fails: object, between: str = "undecided") -> Any:
    """Supported where a test `holds`, refuted where it clearly `fails`, and a word `between`."""
    return "supported" if holds else "refuted" if fails else between


@dataclass(frozen=True)
class Difference:
    """A difference of means and its interval of this `confidence`; NaN for none.

    `samples` are the two that are compared, or their paired differences alone.
    """

    mean: float
    low: float
    high: float
    confidence: float = CONFIDENCE
    samples: Sequence[Sequence[float]] = ()

    @property
    def below(self) -> bool:
        """Whether all of the interval is below 0."""
        return self.high < 0

    @property
    def above(self) -> bool:
        """Whether all of the interval is above 0."""
        return self.low > 0


def bonferroni(tests: int) -> float:
    """The confidence of each of several intervals where any one of them decides alone.

    All of them together then miss the truth in at most one of twenty cases (Dunn, Journal of the
    American Statistical Association 56, 1961, pp. 52–64).
    """
    return 1 - (1 - CONFIDENCE) / tests


def difference(*samples: Sequence[float], confidence: float = CONFIDENCE) -> Difference:
    """The mean of a second sample minus that of a first, or of one sample of paired differences.

    Pairs are of trainings that share their seed: what it does to both cancels out (Student,
    Biometrika 6, 1908, pp. 1–25); of equal differences the interval is a point. Two samples count
    as independent: recipes draw shuffles and crops differently, also with equal seeds. No interval
    of fewer than 2 values, nor of two samples neither of which varies.
    """
    mean = fmean(samples[-1]) - (fmean(samples[0]) if len(samples) > 1 else 0.0)
    sizes, off = list(map(len, samples)), math.nan
    if min(sizes) > 1:
        equal = len(samples) == 1 and np.ptp(samples[0]) == 0
        off = 0.0 if equal else margin(list(map(stdev, samples)), sizes, confidence)
    return Difference(mean, mean - off, mean + off, confidence, samples)


def margin(spreads: Any, sizes: Any, confidence: float = CONFIDENCE) -> Any:
    """How far a sum or difference of means can be off, half of its confidence interval.

    Welch's t (Biometrika 34, 1947, pp. 28–35), which does not ask for equal variances, with the
    degrees of freedom of Satterthwaite (Biometrics Bulletin 2, 1946, pp. 110–114). `spreads` are
    the standard deviations of the samples, both [samples] or [samples, rows]. NaN where a sample
    has fewer than two values, or none of them varies, as there is then no noise to judge by.
    """
    sizes = np.asarray(sizes, float)
    parts = np.square(np.asarray(spreads, float)) / sizes
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = parts.sum(axis=0) ** 2 / (parts**2 / (sizes - 1)).sum(axis=0)
    return stdtrit(freedom, (1 + confidence) / 2) * np.sqrt(parts.sum(axis=0))
