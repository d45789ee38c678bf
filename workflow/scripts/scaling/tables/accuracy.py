"""Loss and accuracy of every run, and their differences between cells and recipes."""

import math
from dataclasses import asdict
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from scaling.core import statistics
from scaling.core.grid import CELL_KEYS
from scaling.core.statistics import CONFIDENCE, margin
from scaling.tables import schema
from scaling.tables.runs import Run

LEARNING = ["train_loss", "train_accuracy", "test_loss", "test_accuracy"]
COMPARED = ["train_loss", "train_accuracy", "test_accuracy"]
REFERENCE_BATCH = 128
SEEDS = 3
"""Fewer of them tell too little of their own noise: of two, a 95 % interval is ± 9 deviations."""
EPOCH = 5
AGREE = "agree within noise"
DIFFER = "differ"
UNDECIDED = "undecided"

_CONFIGURATION = ["recipe", "strategy"]
_PLACE = ["strategy", "gpus", "batch_size"]


def accuracy(runs: list[Run], study: str) -> pd.DataFrame:
    """Return one row per run and training epoch (from 1, warm-up included).

    Training metrics are means over ranks, weighted by samples. Test metrics are in the last epoch's
    row only: the last epoch that all runs have, so that equal epochs are compared. Further epochs,
    run until times were steady, are left out, and so are instrumented epochs, some of which run
    without gradient synchronization. Accuracies are fractions (1.0 = all correct), empty when the
    run diverged. A run without epochs (out of memory, missing, …) has one row, without epoch.
    """
    rows = []
    for cell, record in runs:
        status, trained = record["status"] if record else "missing", []
        if record and record["epochs"]:
            asked = record["training"]["warmup_epochs"] + record["training"]["measured_epochs"]
            ranks = pd.DataFrame(record["epochs"])
            ranks = ranks[ranks["role"].ne("instrumented") & ranks["epoch"].le(asked)]
            trained = list(ranks.groupby("epoch"))
        epochs: list[dict[str, Any]] = [
            {"epoch": number}
            | {
                name: np.average(own[name].astype(float), weights=own["samples"])
                for name in ("train_loss", "train_accuracy")
            }
            for number, own in trained
        ] or [{}]
        epochs[-1] |= (record and record["evaluation"]) or {}
        if status == "diverged":
            epochs = [row | {"train_accuracy": None, "test_accuracy": None} for row in epochs]
        rows += [{"study": study, **asdict(cell), "status": status, **row} for row in epochs]
    return schema.arrange("accuracy", rows)


def compare_batches(timing: pd.DataFrame, accuracy: pd.DataFrame) -> pd.DataFrame:
    """Return one row per cell of `timing`: metrics over its seeds, and the gap to the reference.

    Training metrics are from epoch 5, or the last one of a shorter training; test metrics are from
    the end. For each of `LEARNING` there is the mean over the seeds, and `…_min`, `…_max`. Other
    columns: `epoch`, `seeds` (with metrics), `global_batch_size`, `reference` (whether this cell is
    it). `difference` is the difference in mean accuracy, as a fraction: test accuracy where both
    cells have it, else training accuracy (see `difference_of`). `within_spread` tells whether it is
    within the seeds' `statistics.margin`; where one has fewer than `SEEDS`, within the noise of
    `equal_trainings`, None without any. Empty without metrics.

    The reference of a recipe and strategy is batch 128 on 1 GPU if the grid has it, else the
    smallest batch on 1 GPU.
    """
    rows, alike = [], {of: equal_trainings(accuracy, of) for of in COMPARED[1:]}
    for _, cells in timing.groupby(_CONFIGURATION, sort=False):
        own = accuracy.merge(cells[_CONFIGURATION].drop_duplicates(), on=_CONFIGURATION)
        epoch = min(EPOCH, own["epoch"].max())
        figures = [_seeds_of(cell, own, epoch) for cell in cells.itertuples()]
        reference = min(
            (row for row in figures if row["gpus"] == 1),
            key=lambda row: (row["batch_size"] != REFERENCE_BATCH, row["batch_size"]),
            default=None,
        )
        rows += [{**row, **_against(row, reference, alike)} for row in figures]
    return pd.DataFrame(rows)


def _seeds_of(cell: Any, accuracy: pd.DataFrame, epoch: float) -> dict[str, Any]:
    runs = accuracy[(accuracy["gpus"] == cell.gpus) & (accuracy["batch_size"] == cell.batch_size)]
    row: dict[str, Any] = {key: getattr(cell, key) for key in [*CELL_KEYS, "status"]}
    row |= {"global_batch_size": cell.gpus * cell.batch_size, "epoch": epoch}
    for quantity in LEARNING:
        training = quantity.startswith("train")
        values = (runs[runs["epoch"] == epoch] if training else runs)[quantity].dropna()
        row[quantity] = values.mean()
        for part in ("min", "max", "count", "std"):
            row[f"{quantity}_{part}"] = getattr(values, part)()
    return {**row, "seeds": max(row["train_accuracy_count"], row["test_accuracy_count"])}


def equal_trainings(accuracy: pd.DataFrame, quantity: str) -> tuple[float, int]:
    """Return the standard deviation of a metric between trainings that should agree.

    These have the recipe, the global batch and the number of epochs in common, whatever their seed,
    strategy and GPUs. It is pooled over all such groups, with its degrees of freedom: NaN and 0 if
    no two trainings are alike.
    """
    ends = accuracy[accuracy[quantity].notna()].drop_duplicates(
        ["recipe", "gpus", "batch_size", "seed", "epoch", quantity]
    )
    ends = ends.groupby([*_CONFIGURATION, "gpus", "batch_size", "seed"]).tail(1)
    groups = ends.assign(global_batch=ends["gpus"] * ends["batch_size"]).groupby(
        ["recipe", "global_batch", "epoch"]
    )[quantity]
    freedom = int((groups.count() - 1).sum())
    squares = ((groups.count() - 1) * groups.var()).sum()
    return (math.sqrt(squares / freedom), freedom) if freedom else (math.nan, 0)


def _against(
    row: dict[str, Any],
    reference: dict[str, Any] | None,
    alike: dict[str, tuple[float, int]],
) -> dict[str, Any]:
    """Return the columns of `compare_batches` that compare a cell with the reference."""
    unknown = {"difference": math.nan, "difference_of": "", "within_spread": None}
    if reference is None or row is reference:
        return {"reference": row is reference, **unknown}
    for quantity in ("test_accuracy", "train_accuracy"):
        if seeds := min(row[f"{quantity}_count"], reference[f"{quantity}_count"]):
            spreads, counts = (
                [each[f"{quantity}_{part}"] for each in (row, reference)]
                for part in ("std", "count")
            )
            difference = row[quantity] - reference[quantity]
            off = float(margin(spreads, counts))
            if seeds < SEEDS:
                spread, freedom = alike[quantity]
                sides = math.sqrt(sum(1 / count for count in counts))
                off = float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * spread * sides
            return {
                "reference": False,
                "difference": difference,
                "difference_of": quantity,
                "within_spread": None if math.isnan(off) else bool(abs(difference) <= off),
            }
    return {"reference": False, **unknown}


def compare_recipes(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Return one row per shared cell, pair of recipes and quantity of `COMPARED`.

    `accuracy` is accuracy.csv of one study. A row has strategy, gpus, batch_size; `first` and
    `second`, the recipes' names; `quantity`; for each recipe, over its ok runs after their last
    epoch, `…_mean`, `…_std` (sample standard deviation, NaN below 2 seeds), `…_seeds` and
    `…_epochs` (the distinct numbers of epochs, ascending). `difference` is the second's mean minus
    the first's, `low` and `high` its 95 % interval (`statistics.difference`). Accuracies and their
    differences are fractions.

    `verdict` is "agree within noise" if the interval contains 0 (which does not prove equality),
    "differ" if not, and "undecided" for the `reason` given otherwise. Runs of different lengths are
    not compared, nor a recipe of which a seed diverged, as the remaining seeds are a biased
    selection.
    """
    runs = accuracy.sort_values("epoch", kind="stable").groupby(["recipe", *_PLACE, "seed"]).tail(1)
    rows = []
    for place, cells in runs.groupby(_PLACE):
        for (first, own), (second, other) in combinations(cells.groupby("recipe"), 2):
            pair = dict(zip(_PLACE, place, strict=True)) | {"first": first, "second": second}
            rows += [{**pair, **_pair(own, other, quantity)} for quantity in COMPARED]
    return pd.DataFrame(rows)


def _pair(first: pd.DataFrame, second: pd.DataFrame, quantity: str) -> dict[str, Any]:
    row: dict[str, Any] = {"quantity": quantity}
    samples = []
    for name, runs in (("first", first), ("second", second)):
        ok = runs[(runs["status"] == "ok") & runs[quantity].notna()]
        samples.append(ok[quantity].to_list())
        row |= {f"{name}_mean": ok[quantity].mean(), f"{name}_std": ok[quantity].std()}
        row |= {f"{name}_seeds": len(ok), f"{name}_epochs": sorted({int(n) for n in ok["epoch"]})}
    reason = _incomparable(first, second, row)
    difference = math.nan if reason else row["second_mean"] - row["first_mean"]
    few = min(map(len, samples)) < 2
    found = None if reason or few else statistics.difference(*samples)
    low, high = (found.low, found.high) if found else (math.nan, math.nan)
    if not reason and math.isnan(low):
        reason = "fewer than 2 seeds" if few else "no seed differs from another"
    verdict = UNDECIDED if reason else AGREE if low <= 0 <= high else DIFFER
    row |= {"difference": difference, "low": low, "high": high}
    return row | {"verdict": verdict, "reason": reason}


def _incomparable(first: pd.DataFrame, second: pd.DataFrame, row: dict[str, Any]) -> str:
    """Return why the two recipes' metrics must not be subtracted, or ""."""
    for runs in (first, second):
        diverged = (runs["status"] == "diverged").sum()
        if diverged:
            return f"{runs['recipe'].iloc[0]}: {diverged} of {len(runs)} seeds diverged"
    for runs, name in ((first, "first"), (second, "second")):
        if row[f"{name}_seeds"] == 0:
            return f"{runs['recipe'].iloc[0]}: no figures ({', '.join(runs['status'].unique())})"
    epochs = sorted({*row["first_epochs"], *row["second_epochs"]})
    return f"runs of {' and '.join(map(str, epochs))} epochs" if len(epochs) > 1 else ""
