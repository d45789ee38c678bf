"""Accuracy of each technique at each global batch, relative to the reference batch on one GPU."""

import math
from typing import Any

import pandas as pd

from scaling.tables import schema
from scaling.tables.experiments import gains
from scaling.tables.experiments.same_runs import (
    SAME,
    UNDECIDED,
    difference,
    non_inferiority,
    same_runs,
)

QUANTITIES = ["train_loss", "train_accuracy", "test_loss", "test_accuracy"]


def remedies(runs: pd.DataFrame, margin: float) -> pd.DataFrame:
    """Return one row per technique and global batch, from the table of `runs`.

    Values are means over the seeds of the chosen rate, out of `rates` that were tried, for test
    accuracy also minimum and maximum; `validation_accuracy` is the sweep's on held-out images.
    `epochs` and `updates` are completed, `planned_…` requested. `test_difference`: mean accuracy
    minus the reference's, a fraction, with its 95 % interval (`same_runs.difference`) and verdict
    (`non_inferiority`, with `margin` as `accuracy_margin`): within the margin, behind or undecided.
    It is undecided also with fewer than 2 seeds, without a reference, or for a non-finite loss, and
    `SAME`, without an interval, if these are the reference's own runs. A seed "at chance" has
    values and counts as diverged. The last columns are from `gains.with_gains`.
    """
    reference = runs[runs["reference"] & runs["chosen"].eq(True)]
    rows = [
        _row(group, group[group["chosen"].eq(True)], reference, margin)
        for _, group in runs.groupby(["remedy", "global_batch"], sort=False)
    ]
    table = schema.frame("remedies", rows).drop(columns=gains.COLUMNS)
    return gains.with_gains(table, runs)


def _row(
    group: pd.DataFrame, chosen: pd.DataFrame, reference: pd.DataFrame, margin: float
) -> dict[str, Any]:
    same = ("remedy", "options", "global_batch", "gpus", "batch_size", "status", "message")
    row = dict(group.iloc[0][[*same, "reference", "at_edge"]]) | {"accuracy_margin": margin}
    if chosen.empty:
        return row
    row |= dict(chosen.iloc[0][["factor", "learning_rate"]])
    row |= dict(chosen[["epochs", "updates", "planned_epochs", "planned_updates"]].max())
    row |= {
        "rates": group["learning_rate"].nunique(),
        "seeds": len(chosen),
        "diverged_seeds": int((chosen["diverged"] != "").sum()),
        "validation_accuracy": group.loc[
            group["held_out"] & (group["factor"] == row["factor"]), "validation_accuracy"
        ].mean(),
    }
    row |= dict(chosen[QUANTITIES].mean())
    row |= {f"test_accuracy_{end}": chosen["test_accuracy"].agg(end) for end in ("min", "max")}
    names = ("test_difference", "test_low", "test_high", "test_verdict")
    return row | dict(zip(names, _against(chosen, reference, margin), strict=True))


def _against(
    chosen: pd.DataFrame, reference: pd.DataFrame, margin: float
) -> tuple[float, float, float, str]:
    """Return the difference in test accuracy to the reference, its interval and verdict."""
    if bool(chosen.iloc[0]["reference"]):
        return math.nan, math.nan, math.nan, ""
    if (chosen["diverged"] == "not finite").any():
        return math.nan, math.nan, math.nan, UNDECIDED
    found = difference(chosen, reference, "test_accuracy")
    verdict = (
        SAME if same_runs(chosen, reference) else non_inferiority(found.low, found.high, margin)
    )
    return found.mean, found.low, found.high, verdict
