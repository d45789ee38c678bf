"""Select the runs to compare: plain SGD with and without a sweep, and the best technique.

Options are those of the tables, in words: text with ", " between them.
"""

from typing import Any

import pandas as pd

OTHER_UPDATES = "muon |lars "
"""Options that replace SGD's update."""


def is_plain(options: str) -> bool:
    """Return whether these options are plain SGD's, whatever the rate."""
    return not non_learning_rate_options(options)


def non_learning_rate_options(options: str) -> list[str]:
    """Return those of these options that do not only set the learning rate."""
    parts = filter(None, options.split(", "))
    return [option for option in parts if not option.startswith("scaling ")]


def base_rate(runs: pd.DataFrame, chosen: bool = True) -> pd.DataFrame:
    """Return all seeds' runs with plain SGD at the unscaled base rate.

    With `chosen` rows of convergence.csv, otherwise rows of remedies.csv.
    """
    plain = runs[(runs["options"] == "") & (runs["factor"] == 1)]
    plain = plain[plain["chosen"].eq(True)] if chosen else plain
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
