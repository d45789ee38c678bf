"""What each remedy is worth at each global batch, against the reference batch on one GPU."""

import math
from typing import Any

import pandas as pd

from scaling.core.statistics import welch_interval
from scaling.tables import schema
from scaling.tables.experiments import gains
from scaling.tables.experiments.gap import SAME, UNDECIDED, gap
from scaling.tables.experiments.same_runs import same_runs

QUANTITIES = ["train_loss", "train_accuracy", "test_loss", "test_accuracy"]
COLUMNS = schema.columns("remedies")


def remedies(runs: pd.DataFrame, margin: float) -> pd.DataFrame:
    """One row per remedy and global batch of the table of `runs`, columns `COLUMNS`.

    Mean, minimum and maximum over the seeds of the chosen rate, of `rates` that were tried;
    `rule_…` is the first seed at the rate of the rule. `epochs` and `updates` are those done,
    `planned_…` those asked for. `train_difference` and `test_difference`: mean accuracy minus the
    reference's, a fraction, with Welch's 95 % interval (`statistics.welch_interval`) and what
    it tells (`gap.gap`, `accuracy_margin` being `margin`): within the margin, behind or undecided;
    undecided also with fewer than 2 seeds, without a reference, or where a loss was not finite;
    `gap.SAME`, without an interval, where these are the reference's own runs. A seed "at chance"
    has figures and counts as diverged. `same_runs_as` is the first remedy before this one whose
    chosen runs at this global batch have the same figures in every seed, "" for none. The last
    columns are those of `gains.with_gains`.
    """
    reference = runs[runs["reference"] & runs["chosen"].eq(True)]
    rows = []
    before: list[pd.DataFrame] = []
    for _, group in runs.groupby(["remedy", "global_batch"], sort=False):
        chosen = group[group["chosen"].eq(True)]
        copied = next((each.iloc[0]["remedy"] for each in before if same_runs(each, chosen)), "")
        before.append(chosen)
        row = _row(group, reference, margin)
        rows.append({**row, "accuracy_margin": margin, "same_runs_as": copied})
    without_gains = [column for column in COLUMNS if column not in gains.COLUMNS]
    return gains.with_gains(pd.DataFrame(rows, columns=without_gains), runs)


def _row(group: pd.DataFrame, reference: pd.DataFrame, margin: float) -> dict[str, Any]:
    first = group.iloc[0]
    same = ("remedy", "options", "global_batch", "gpus", "batch_size", "status", "message")
    row = {key: first[key] for key in (*same, "reference", "rule_rate", "at_edge")}
    chosen = group[group["chosen"].eq(True)]
    if chosen.empty:
        return row
    best = chosen.iloc[0]
    row |= {key: best[key] for key in ("factor", "learning_rate")}
    row["rates"] = group["learning_rate"].nunique()
    for key in ("epochs", "updates", "planned_epochs", "planned_updates"):
        row[key] = chosen[key].max()
    row |= {"seeds": len(chosen), "diverged_seeds": int((chosen["diverged"] != "").sum())}
    for rule in group[group["factor"] == 1].head(1).itertuples():
        row |= {"rule_test_accuracy": rule.test_accuracy, "rule_diverged": rule.diverged}
    for quantity in QUANTITIES:
        values = chosen[quantity]
        row |= {quantity: values.mean(), f"{quantity}_min": values.min()}
        row[f"{quantity}_max"] = values.max()
    for split in ("train", "test"):
        row |= _against(split, chosen, reference, margin)
    return row


def _against(
    split: str, chosen: pd.DataFrame, reference: pd.DataFrame, margin: float
) -> dict[str, Any]:
    """The difference to the reference in one accuracy, its interval and what it tells."""
    own, other = (frame[f"{split}_accuracy"].tolist() for frame in (chosen, reference))
    low, high, difference, verdict = math.nan, math.nan, math.nan, UNDECIDED
    finite = not (chosen["diverged"] == "not finite").any()
    if bool(chosen.iloc[0]["reference"]):
        verdict = ""
    elif finite and own and other:
        difference = sum(own) / len(own) - sum(other) / len(other)
        if same_runs(chosen, reference):
            verdict = SAME
        elif min(len(own), len(other)) > 1:
            low, high = welch_interval(other, own)
            verdict = gap(low, high, margin)
    return {
        f"{split}_difference": difference,
        f"{split}_low": low,
        f"{split}_high": high,
        f"{split}_verdict": verdict,
    }
