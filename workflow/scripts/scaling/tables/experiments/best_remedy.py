"""Select the runs to compare, plain SGD's and the best technique's, and their difference.

Options are those of the tables, in words: text with ", " between them.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from scaling.core import statistics
from scaling.core.statistics import Difference

TRAINED = ["global_batch", "seed", "updates", "train_loss", "train_accuracy"]
ALL = [*TRAINED, "test_loss", "test_accuracy"]
OTHER_UPDATES = "muon |lars "
"""Options that replace SGD's update."""


def is_plain(options: str) -> bool:
    """Return whether these options are plain SGD's, whatever the rate."""
    parts = filter(None, options.split(", "))
    return all(option.startswith("scaling ") for option in parts)


def base_rate(runs: pd.DataFrame) -> pd.DataFrame:
    """Return rows of chosen runs, or of remedies.csv, of plain SGD at the unscaled base rate."""
    plain = runs[(runs["options"] == "") & (runs["factor"] == 1)]
    return plain[plain["remedy"] == plain["remedy"].iloc[0]] if len(plain) else plain


def plain_sweep(remedies: pd.DataFrame, global_batch: int) -> Any | None:
    """Return the row of plain SGD with the largest sweep (2 rates or more), else None.

    Techniques with a sweep are compared with it at the same global batch.
    """
    rows = remedies[(remedies["global_batch"] == global_batch) & (remedies["rates"] > 1)]
    rows = rows[rows["options"].map(is_plain).astype(bool)]
    return next(rows.loc[[rows["rates"].idxmax()]].itertuples()) if len(rows) else None


def reference_epochs(remedies: pd.DataFrame) -> float:
    """Return the number of epochs of the reference; NaN without one."""
    return float(remedies.loc[remedies["reference"].eq(True), "planned_epochs"].max())


def best(remedies: pd.DataFrame, global_batch: int, sgd: bool = False) -> Any | None:
    """Return the row with the highest accuracy on held-out images at equal epochs, or None.

    So the test set can judge the choice. Rows have as many epochs as the reference, and no diverged
    seed. `sgd` excludes Muon and LARS.
    """
    equal = remedies["planned_epochs"] == reference_epochs(remedies)
    trained = remedies["validation_accuracy"].notna() & (remedies["diverged_seeds"] == 0)
    rows = remedies[equal & trained & (remedies["global_batch"] == global_batch)]
    if sgd:
        rows = rows[~rows["options"].str.contains(OTHER_UPDATES)]
    return next(rows.nlargest(1, "validation_accuracy").itertuples(), None)


def same_runs(own: pd.DataFrame, other: pd.DataFrame, columns: Sequence[str] = ALL) -> bool:
    """Return whether these values are exactly equal in every seed: one run under two names.

    Techniques that differ only in `precise_batch_norm` have equal `TRAINED` columns and two
    evaluations. False if a loss is not finite.
    """
    ours, theirs = (runs[[*columns]].sort_values("seed").to_numpy(float) for runs in (own, other))
    return bool(len(own)) and np.array_equal(ours, theirs)


def difference(own: pd.DataFrame, other: pd.DataFrame) -> Difference:
    """Return the mean test accuracy of `own` minus that of `other`, with Welch's interval.

    If both are the same trainings, evaluated in two ways, it is the interval of paired differences,
    as the samples are not independent. There is no interval for a run compared with itself, nor if
    a loss was not finite, as the remaining seeds are a biased selection.
    """
    own, other = own.sort_values("seed"), other.sort_values("seed")
    first, second = (runs["test_accuracy"].dropna().tolist() for runs in (other, own))
    if not first or not second:
        return Difference(math.nan, math.nan, math.nan)
    failed = pd.concat([own["diverged"], other["diverged"]]).eq("not finite").any()
    if failed or same_runs(own, other):
        return Difference(float(np.mean(second) - np.mean(first)), math.nan, math.nan)
    paired = min(len(first), len(second)) > 1 and same_runs(own, other, TRAINED)
    samples = [np.subtract(second, first).tolist()] if paired else [first, second]
    return statistics.difference(*samples)
