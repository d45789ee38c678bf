"""The difference of two techniques over seeds, and whether they share the same trainings."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from scaling.core import statistics
from scaling.core.statistics import Difference

TRAINED = ["global_batch", "seed", "updates", "train_loss", "train_accuracy"]
ALL = [*TRAINED, "test_loss", "test_accuracy"]
CLOSED, BEHIND, UNDECIDED = "within the margin", "behind", "undecided"


def same_runs(own: pd.DataFrame, other: pd.DataFrame, columns: Sequence[str] = ALL) -> bool:
    """Return whether these values are exactly equal in every seed: one run under two names.

    Techniques that differ only in `precise_batch_norm` have equal `TRAINED` columns and two
    evaluations. False if a loss is not finite.
    """
    ours, theirs = (runs[[*columns]].sort_values("seed").to_numpy(float) for runs in (own, other))
    return bool(len(own)) and np.array_equal(ours, theirs)


def difference(own: pd.DataFrame, other: pd.DataFrame, quantity: str) -> Difference:
    """Return the mean `quantity` of `own` minus that of `other`, with Welch's interval.

    If both are the same trainings, evaluated in two ways, it is the interval of paired differences,
    as the samples are not independent. There is no interval for a run compared with itself, nor if
    a loss was not finite, as the remaining seeds are a biased selection.
    """
    own, other = own.sort_values("seed"), other.sort_values("seed")
    first, second = other[quantity].dropna().tolist(), own[quantity].dropna().tolist()
    if not first or not second:
        return Difference(math.nan, math.nan, math.nan)
    failed = pd.concat([own["diverged"], other["diverged"]]).eq("not finite").any()
    if failed or same_runs(own, other):
        return Difference(float(np.mean(second) - np.mean(first)), math.nan, math.nan)
    paired = min(len(first), len(second)) > 1 and same_runs(own, other, TRAINED)
    samples = [np.subtract(second, first).tolist()] if paired else [first, second]
    return statistics.difference(*samples)


def non_inferiority(low: float, high: float, margin: float) -> str:
    """Return the verdict on the interval from `low` to `high` of an accuracy difference.

    `CLOSED`: all of it is above -`margin`, which excludes a loss of `margin` (non-inferiority, as
    in clinical trials: guideline EMEA/CPMP/EWP/2158/99, 2005). `BEHIND`: all of it is below 0, and
    such a loss is not excluded. `UNDECIDED`: it contains both, or is NaN: an interval that contains
    0 does not prove equality.
    """
    if low > -margin:
        return CLOSED
    return BEHIND if high < 0 else UNDECIDED
