"""What each remedy is worth at each global batch, against the reference batch on one GPU."""

import math
from typing import Any

import pandas as pd

from scaling.tables import schema
from scaling.tables.experiments import gains
from scaling.tables.experiments.same_runs import SAME, UNDECIDED, difference, gap, same_runs

QUANTITIES = ["train_loss", "train_accuracy", "test_loss", "test_accuracy"]


def remedies(runs: pd.DataFrame, margin: float) -> pd.DataFrame:
    """One row per remedy and global batch of the table of `runs`.

    Means over the seeds of the chosen rate, of `rates` that were tried, of the test accuracy also
    minimum and maximum; `validation_accuracy` is that of its sweep on held-out images. `epochs` and
    `updates` are those done, `planned_…` those asked for. `test_difference`: mean accuracy minus
    the reference's, a fraction, with its 95 % interval (`same_runs.difference`) and what it tells
    (`same_runs.gap`, `accuracy_margin` being `margin`): within the margin, behind or undecided;
    undecided also with fewer than 2 seeds, without a reference, or where a loss was not finite;
    `SAME`, without an interval, where these are the reference's own runs. A seed "at chance" has
    figures and counts as diverged. The last columns are those of `gains.with_gains`.
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
    """The difference in test accuracy to the reference, its interval and what it tells."""
    if bool(chosen.iloc[0]["reference"]):
        return math.nan, math.nan, math.nan, ""
    if (chosen["diverged"] == "not finite").any():
        return math.nan, math.nan, math.nan, UNDECIDED
    found = difference(chosen, reference, "test_accuracy")
    told = SAME if same_runs(chosen, reference) else gap(found.low, found.high, margin)
    return found.mean, found.low, found.high, told
