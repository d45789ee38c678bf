"""Intervals of differences of means, and how several tests decide together."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

CONFIDENCE = 0.95


def judge(holds: bool, fails: bool) -> str:
    """Supported where a test `holds`, refuted where it clearly `fails`, undecided between."""
    return "supported" if holds else "refuted" if fails else "undecided"


@dataclass(frozen=True)
class Difference:
    """A difference of means and its interval of this `confidence`; NaN for none."""

    mean: float
    low: float
    high: float
    confidence: float = CONFIDENCE

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
    from scipy.stats import ttest_rel

    differences = np.subtract(second, first)
    if np.ptp(differences) == 0:
        return float(differences[0]), float(differences[0])
    return _interval(ttest_rel, second, first, confidence)


def welch_interval(
    first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """The confidence interval of mean(second) − mean(first), from at least 2 values each.

    Welch's t (Biometrika 34, 1947, pp. 28–35), which does not ask for equal variances, with the
    degrees of freedom of Satterthwaite (Biometrics Bulletin 2, 1946, pp. 110–114). It takes the
    seeds of the two for independent: recipes draw their shuffles and crops differently, also with
    equal seeds. NaN when neither sample varies, as there is then no noise to judge by.
    """
    from scipy.stats import ttest_ind

    if np.ptp(first) == np.ptp(second) == 0:
        return math.nan, math.nan
    return _interval(partial(ttest_ind, equal_var=False), second, first, confidence)


def _interval(
    test: Callable[..., Any], second: Sequence[float], first: Sequence[float], confidence: float
) -> tuple[float, float]:
    """The interval of one of SciPy's tests, which warns where a sample's values are all equal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        interval = test(second, first).confidence_interval(confidence)
    return float(interval.low), float(interval.high)
