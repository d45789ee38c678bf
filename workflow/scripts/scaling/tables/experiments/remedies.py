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

    Mean, minimum and maximum over the seeds of the chosen rate, of `rates` that were tried;
    `rule_…` is the first seed at the rate of the rule, `validation_accuracy` that of its sweep on
    held-out images. `epochs` and `updates` are those done, `planned_…` those asked for.
    `train_difference` and `test_difference`: mean accuracy minus the reference's, a fraction, with
    its 95 % interval (`same_runs.difference`) and what it tells (`same_runs.gap`, `accuracy_margin`
    being `margin`): within the margin, behind or undecided; undecided also with fewer than 2 seeds,
    without a reference, or where a loss was not finite; `SAME`, without an interval, where these
    are the reference's own runs. A seed "at chance" has figures and counts as diverged.
    `same_runs_as` is the first remedy before this one whose chosen runs at this global batch have
    the same figures in every seed, "" for none. The last columns are those of `gains.with_gains`.
    """
    reference = runs[runs["reference"] & runs["chosen"].eq(True)]
    rows = []
    before: dict[Any, list[pd.DataFrame]] = {}
    for (_, batch), group in runs.groupby(["remedy", "global_batch"], sort=False):
        chosen = group[group["chosen"].eq(True)]
        others = before.setdefault(batch, [])
        copied = next((each.iloc[0]["remedy"] for each in others if same_runs(each, chosen)), "")
        others.append(chosen)
        row = _row(group, chosen, reference, margin)
        rows.append({**row, "accuracy_margin": margin, "same_runs_as": copied})
    table = schema.frame("remedies", rows).drop(columns=gains.COLUMNS)
    return gains.with_gains(table, runs)


def _row(
    group: pd.DataFrame, chosen: pd.DataFrame, reference: pd.DataFrame, margin: float
) -> dict[str, Any]:
    same = ("remedy", "options", "global_batch", "gpus", "batch_size", "status", "message")
    row = dict(group.iloc[0][[*same, "reference", "rule_rate", "at_edge"]])
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
    for rule in group[group["factor"] == 1].sort_values("held_out").head(1).itertuples():
        row |= {"rule_test_accuracy": rule.test_accuracy, "rule_diverged": rule.diverged}
    for end, figures in chosen[QUANTITIES].agg(["mean", "min", "max"]).iterrows():
        row |= dict(figures.add_suffix(f"_{end}".removesuffix("_mean")))
    for split in ("train", "test"):
        found = _against(f"{split}_accuracy", chosen, reference, margin)
        names = ("difference", "low", "high", "verdict")
        row |= {f"{split}_{name}": value for name, value in zip(names, found, strict=True)}
    return row


def _against(
    quantity: str, chosen: pd.DataFrame, reference: pd.DataFrame, margin: float
) -> tuple[float, float, float, str]:
    """The difference to the reference, its interval and what it tells."""
    if bool(chosen.iloc[0]["reference"]):
        return math.nan, math.nan, math.nan, ""
    if (chosen["diverged"] == "not finite").any():
        return math.nan, math.nan, math.nan, UNDECIDED
    found = difference(chosen, reference, quantity)
    told = SAME if same_runs(chosen, reference) else gap(found.low, found.high, margin)
    return found.mean, found.low, found.high, told
