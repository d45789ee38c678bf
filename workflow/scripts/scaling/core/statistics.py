"""Intervals of differences of means, and how several tests decide together."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import numpy as np
from scipy.special import stdtrit

CONFIDENCE = 0.95


def judge(holds: bool, fails: bool) -> str:
    """Supported where a test `holds`, refuted where it clearly `fails`, undecided between."""
    return "supported" if holds else "refuted" if fails else "undecided"


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


def paired_interval(
    first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """The confidence interval of mean(second − first), from at least 2 pairs.

    Student's t (Biometrika 6, 1908, pp. 1–25) of the differences, for trainings that share their
    seed: what a seed does to both of a pair cancels out. Of equal differences it is a point.
    """
    differences = np.subtract(second, first).tolist()
    if np.ptp(differences) == 0:
        return differences[0], differences[0]
    off = margin([stdev(differences)], [len(differences)], confidence)
    return fmean(differences) - off, fmean(differences) + off


def welch_interval(
    first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """The confidence interval of mean(second) − mean(first), from at least 2 values each.

    By `margin`, which takes the seeds of the two for independent: recipes draw their shuffles and
    crops differently, also with equal seeds. NaN when neither sample varies.
    """
    off = margin(list(map(stdev, (first, second))), list(map(len, (first, second))), confidence)
    difference = fmean(second) - fmean(first)
    return difference - off, difference + off


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
