"""Which remedy did best at a global batch, and which runs had no remedy at all."""

from typing import Any

import pandas as pd


def base_rate(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of all seeds with plain SGD at the base rate, whatever the batch."""
    plain = runs[(runs["options"] == "") & (runs["factor"] == 1) & runs["chosen"].eq(True)]
    return plain[plain["remedy"] == plain["remedy"].iloc[0]] if len(plain) else plain


def at_equal_epochs(remedies: pd.DataFrame) -> pd.DataFrame:
    """The rows with figures after as many epochs as the reference has, no seed of them diverged.

    Runs at equal updates have more, except where these are the same; runs that ended early, their
    loss no longer finite, have fewer.
    """
    equal = remedies["epochs"] == reference_epochs(remedies)
    trained = remedies["train_accuracy"].notna() & (remedies["diverged_seeds"] == 0)
    return remedies[equal & trained]


def reference_epochs(remedies: pd.DataFrame) -> float:
    """How many epochs the reference has; not a number without it."""
    return float(remedies.loc[remedies["reference"].eq(True), "epochs"].max())


def best(remedies: pd.DataFrame, global_batch: int) -> Any | None:
    """The row with the highest mean training accuracy at equal epochs; None without any.

    By the training set, so that the test set may judge the choice.
    """
    rows = at_equal_epochs(remedies)
    rows = rows[rows["global_batch"] == global_batch]
    return next(rows.loc[[rows["train_accuracy"].idxmax()]].itertuples()) if len(rows) else None


def without_sweep(runs: pd.DataFrame) -> list[str]:
    """The remedies that have the same single factor in all of `runs` (or of their loss curves)."""
    factors = runs.groupby("remedy", sort=False)["factor"].nunique()
    return [str(remedy) for remedy in factors[factors == 1].index]
