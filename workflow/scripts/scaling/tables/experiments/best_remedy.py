"""Which runs to compare with which: plain SGD with and without a sweep, and the best remedy."""

from typing import Any

import pandas as pd

PRECISE = "precise_batch_norm"
OTHER_UPDATES = "muon |lars "
"""Options by which an update is not SGD's."""
OTHER_STEPS = f"{OTHER_UPDATES}|ghost_batch "
"""Options by which a step costs more than the step of a cell."""


def is_plain(options: str) -> bool:
    """Whether these options, as tables have them, are plain SGD's: they concern the rate alone."""
    return not beside_the_rate(options)


def beside_the_rate(options: str) -> list[str]:
    """Those of these options, as tables have them, that concern more than the rate."""
    return [option for option in _parts(options) if not option.startswith("scaling ")]


def base_rate(runs: pd.DataFrame, chosen: bool = True) -> pd.DataFrame:
    """The runs of all seeds with plain SGD at the base rate, whatever the batch.

    Those `chosen` of convergence.csv; not so, the rows of remedies.csv.
    """
    plain = runs[(runs["options"] == "") & (runs["factor"] == 1)]
    plain = plain[plain["chosen"].eq(True)] if chosen else plain
    return plain[plain["remedy"] == plain["remedy"].iloc[0]] if len(plain) else plain


def plain_sweep(remedies: pd.DataFrame, global_batch: int) -> Any | None:
    """The row of plain SGD with the most rates tried, at least 2; None without any.

    What a remedy with a sweep of its own is compared with at the same global batch.
    """
    rows = remedies[(remedies["global_batch"] == global_batch) & (remedies["rates"] > 1)]
    rows = rows[rows["options"].map(is_plain).astype(bool)]
    return next(rows.loc[[rows["rates"].idxmax()]].itertuples()) if len(rows) else None


def reference_epochs(remedies: pd.DataFrame) -> float:
    """How many epochs the reference has; not a number without it."""
    return float(remedies.loc[remedies["reference"].eq(True), "planned_epochs"].max())


def best(remedies: pd.DataFrame, global_batch: int, sgd: bool = False) -> Any | None:
    """The row with the highest accuracy at equal epochs; None without any.

    On held-out images where they were evaluated, else on the training images (see
    `evaluated_best`), so that the test set may judge the choice. Equal are as many as the reference
    has; no seed diverged. `sgd` leaves out Muon and LARS.
    """
    equal = remedies["planned_epochs"] == reference_epochs(remedies)
    trained = remedies["train_accuracy"].notna() & (remedies["diverged_seeds"] == 0)
    rows = remedies[equal & trained & (remedies["global_batch"] == global_batch)]
    if sgd:
        rows = rows[~rows["options"].str.contains(OTHER_UPDATES)]
    if rows.empty:
        return None
    if rows["validation_accuracy"].notna().any():
        return next(rows.loc[[rows["validation_accuracy"].idxmax()]].itertuples())
    return evaluated_best(rows, next(rows.loc[[rows["train_accuracy"].idxmax()]].itertuples()))


def evaluated_best(rows: pd.DataFrame, row: Any) -> Any:
    """Of `rows` the one with precise batch norms that trained as `row` did; `row` without it.

    These two differ by their evaluation alone, so no training figure can choose between them.
    """
    same = [
        _parts(options) == [*_parts(row.options), PRECISE] and rate == row.learning_rate
        for options, rate in zip(rows["options"], rows["learning_rate"], strict=True)
    ]
    return next(rows[same].itertuples(), row)


def _parts(options: str) -> list[str]:
    return [option for option in options.split(", ") if option]
