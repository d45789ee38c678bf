"""Whether recipes train the same model to the same quality: equal cells, seeds against seeds."""

import math
from itertools import combinations
from typing import Any

import pandas as pd

from scaling.core.statistics import welch_interval

QUANTITIES = ["train_loss", "train_accuracy", "test_accuracy"]
AGREE = "agree within noise"
DIFFER = "differ"
UNDECIDED = "undecided"

_PLACE = ["strategy", "gpus", "batch_size"]


def compare(accuracy: pd.DataFrame) -> pd.DataFrame:
    """One row per cell that two recipes share, pair of recipes and quantity of `QUANTITIES`.

    `accuracy` is accuracy.csv of one study. A row has strategy, gpus, batch_size; `first` and
    `second`, the recipes' names; `quantity`; for each recipe, over its runs that are ok and after
    each run's last epoch (warm-up and measured), `…_mean`, `…_std` (sample standard deviation, NaN
    below 2 seeds), `…_seeds` and `…_epochs` (the different numbers of epochs, ascending).
    `difference` is the second's mean minus the first's, `low` and `high` its 95 % interval
    (`welch_interval`). Accuracies and their differences are fractions.

    `verdict`: "agree within noise" when the interval contains 0, which is no proof of equality: it
    leaves room for any difference inside the interval; "differ" when it does not; "undecided" for
    the `reason` given otherwise. Runs of different lengths are not compared, nor a recipe of which
    a seed diverged, as the seeds that are left are the lucky ones.
    """
    runs = accuracy.sort_values("epoch", kind="stable").groupby(["recipe", *_PLACE, "seed"]).tail(1)
    rows = []
    for place, cells in runs.groupby(_PLACE):
        for (first, own), (second, other) in combinations(cells.groupby("recipe"), 2):
            pair = dict(zip(_PLACE, place, strict=True)) | {"first": first, "second": second}
            rows += [{**pair, **_compare(own, other, quantity)} for quantity in QUANTITIES]
    return pd.DataFrame(rows)


def _compare(first: pd.DataFrame, second: pd.DataFrame, quantity: str) -> dict[str, Any]:
    recipes = {"first": first, "second": second}
    row: dict[str, Any] = {"quantity": quantity}
    samples = []
    for name, runs in recipes.items():
        ok = runs[(runs["status"] == "ok") & runs[quantity].notna()]
        samples.append(ok[quantity].to_list())
        row |= {f"{name}_mean": ok[quantity].mean(), f"{name}_std": ok[quantity].std()}
        row |= {f"{name}_seeds": len(ok), f"{name}_epochs": sorted({int(n) for n in ok["epoch"]})}
    row |= {"difference": math.nan, "low": math.nan, "high": math.nan}
    refusal = _incomparable(first, second, row)
    if refusal:
        return {**row, "verdict": UNDECIDED, "reason": refusal}
    row["difference"] = row["second_mean"] - row["first_mean"]
    if min(map(len, samples)) < 2:
        return {**row, "verdict": UNDECIDED, "reason": "fewer than 2 seeds"}
    row["low"], row["high"] = welch_interval(*samples)
    if math.isnan(row["low"]):
        return {**row, "verdict": UNDECIDED, "reason": "no seed differs from another"}
    agree = row["low"] <= 0 <= row["high"]
    return {**row, "verdict": AGREE if agree else DIFFER, "reason": ""}


def _incomparable(first: pd.DataFrame, second: pd.DataFrame, row: dict[str, Any]) -> str:
    """Why the two recipes' figures must not be subtracted, or nothing."""
    for runs in (first, second):
        diverged = (runs["status"] == "diverged").sum()
        if diverged:
            return f"{runs['recipe'].iloc[0]}: {diverged} of {len(runs)} seeds diverged"
    for runs, name in ((first, "first"), (second, "second")):
        if row[f"{name}_seeds"] == 0:
            return f"{runs['recipe'].iloc[0]}: no figures ({', '.join(runs['status'].unique())})"
    epochs = sorted({*row["first_epochs"], *row["second_epochs"]})
    return f"runs of {' and '.join(map(str, epochs))} epochs" if len(epochs) > 1 else ""
