"""Seeds against seeds: what claims say of runs that were repeated."""

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.statistics import paired_interval
from scaling.tables.experiments.same_runs import same_runs, same_training
from scaling.tables.recipe_quality import CONFIDENCE, welch_interval


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

    def words(self) -> str:
        """In percentage points: `−3.10 points (95 % interval −4.00 to −2.20)`."""
        if math.isnan(self.mean):
            return "unknown (a loss is not finite)"
        interval = (
            "no interval"
            if math.isnan(self.low)
            else f"{100 * self.confidence:.4g} % interval {fmt.points(100 * self.low)} to "
            f"{fmt.points(100 * self.high)}"
        )
        return f"{fmt.points(100 * self.mean)} points ({interval})"

    def figures(self, name: str) -> dict[str, float | str]:
        """The three figures, by `name`."""
        values = {"difference": self.mean, "low": self.low, "high": self.high}
        return {
            f"{name}_{key}": "none" if math.isnan(value) else value for key, value in values.items()
        }


def bonferroni(tests: int) -> float:
    """The confidence of each of several intervals where any one of them decides alone.

    All of them together then miss the truth in at most one of twenty cases (Dunn, Journal of the
    American Statistical Association 56, 1961, pp. 52–64).
    """
    return 1 - (1 - CONFIDENCE) / tests


def difference(
    own: pd.DataFrame, other: pd.DataFrame, quantity: str, confidence: float = CONFIDENCE
) -> Difference:
    """The mean of `quantity` of `own` minus that of `other`, with Welch's interval.

    Where both are the same trainings, evaluated in two ways, it is the interval of their paired
    differences (`paired.paired_interval`), as the two samples are not independent. No interval
    between one run and itself, nor where a loss was not finite: the seeds that are left are the
    lucky ones.
    """
    own, other = own.sort_values("seed"), other.sort_values("seed")
    first, second = other[quantity].dropna().tolist(), own[quantity].dropna().tolist()
    if not first or not second:
        return Difference(math.nan, math.nan, math.nan)
    mean = sum(second) / len(second) - sum(first) / len(first)
    failed = pd.concat([own["diverged"], other["diverged"]]).eq("not finite").any()
    if failed or min(len(first), len(second)) < 2 or same_runs(own, other):
        return Difference(mean, math.nan, math.nan)
    interval = paired_interval if same_training(own, other) else welch_interval
    return Difference(mean, *interval(first, second, confidence), confidence)


def spread(runs: pd.DataFrame, quantity: str) -> str:
    """Mean and range over the runs: `71.2 % (70.9–71.5)`; losses without the percent sign."""
    values = runs[quantity].dropna()
    if values.empty:
        return "no figure (not finite)"
    factor, unit = (100, " %") if quantity.endswith("accuracy") else (1, "")
    text = f"{fmt.significant(factor * values.mean())}{unit}"
    if len(values) == 1:
        return text
    return f"{text} ({fmt.span(factor * values.min(), factor * values.max())})"


def figures_of(runs: pd.DataFrame, quantity: str, prefix: str = "") -> dict[str, Any]:
    """Mean, minimum and maximum of `quantity` over the runs, by name."""
    values = runs[quantity].dropna()
    if values.empty:
        return {f"{prefix}{quantity}": "not finite"}
    return {
        f"{prefix}{quantity}": values.mean(),
        f"{prefix}{quantity}_min": values.min(),
        f"{prefix}{quantity}_max": values.max(),
    }
