"""Recommend a configuration, and compare numbers of GPUs by time and cost."""

import math
from typing import Any

import pandas as pd

from scaling.claims.claim import nearest
from scaling.core.grid import REFERENCE_BATCH
from scaling.report.cells import fastest, learned
from scaling.tables.schema import StudyTables, by_configuration, on_cpu, rows_of

LAB = "plain"
"""Name of the recipe that trains as in the lab's handout."""
ENDS = ("", "_low", "_high")


def recommended(study: StudyTables, cells: pd.DataFrame) -> Any | None:
    """Return the recommended row, or None on a CPU or if no row qualifies.

    First choice: of the time-to-accuracy trainings with two or more seeds, all of which reached the
    accuracy, the training with the shortest whole run. Second choice: the fastest accurate row (see
    `learned`) with several seeds. Third choice: the fastest accurate row.
    """
    if on_cpu(study.provenance):
        return None
    trained = trainings(study)
    there = trained[(trained["reached"] == trained["seeds"]) & (trained["seeds"] > 1)]
    order = ["run_seconds", "training_seconds"]
    good = cells[learned(cells)]
    several = good[good["test_accuracy_count"] > 1]
    shortest = next(rows_of(there.sort_values(order)), None)
    return shortest or fastest(several) or fastest(good)


def trainings(study: StudyTables) -> pd.DataFrame:
    """Return the time-to-accuracy trainings, with seconds and joules of an epoch.

    The column `break_even` has `break_even(one, row)`: `one` is the training on the fewest GPUs.
    """
    found = study.trained_to_accuracy
    seconds = found["training_seconds"] / found["epochs"]
    found = found.assign(
        epoch_seconds=seconds,
        gpu_seconds=seconds * found["gpus"],
        epoch_joules=found["joules"] / found["epochs"],
        other_seconds=found["run_seconds"] - found["training_seconds"],
        job_seconds=found["run_seconds"],
        **{f"fixed_global_batch_speedup{end}": found[f"speedup{end}"] for end in ENDS},
    ).drop(columns=["speedup", "speedup_low", "speedup_high"])
    found = found.sort_values("gpus", kind="stable")
    alone = next(rows_of(found), None)
    return found.assign(break_even=[break_even(alone, row) for row in rows_of(found)])


def break_even(one: Any, many: Any) -> float:
    """Return the fewest epochs with which row `many` ends before row `one`; NaN if there are none.

    A training takes the time of its epochs plus `other_seconds`, such as start-up.
    """
    saved = one.epoch_seconds - many.epoch_seconds
    later = many.other_seconds - one.other_seconds
    known = saved > 0 and not math.isnan(later)
    return max(1, math.ceil(later / saved)) if known else math.nan


def pays_from(cells: pd.DataFrame, best: Any) -> float:
    """Return from how many epochs on `best` ends before all rows with longer epochs, or NaN."""
    lengths = [break_even(row, best) for row in rows_of(cells[cells["status"] == "ok"])]
    return max((length for length in lengths if length >= 1), default=math.nan)


def from_the_lab(study: StudyTables) -> pd.DataFrame:
    """Return a row per machine: how much faster than recipe `LAB` the fastest other recipe is.

    `factor` is the epoch time of `LAB` / that of the other `recipe`, on one GPU with b = 128.
    """
    runs = study.provenance
    runs = runs[(runs["gpus"] == 1) & (runs["batch_size"] == REFERENCE_BATCH)]
    seconds = runs.pivot_table("epoch_seconds", "machine", "recipe", "median", dropna=False)
    others = seconds.drop(columns=LAB, errors="ignore").median()
    if LAB not in seconds or others.empty:
        return pd.DataFrame(columns=["recipe", "factor"])
    best = str(others.idxmin())
    factors = (seconds[LAB] / seconds[best]).dropna()
    return factors.to_frame("factor").assign(recipe=best)


def how_many_gpus(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return rows that compare numbers of GPUs, by recipe and strategy, followed by `trainings`.

    Rows are compared with one GPU at the batch size b nearest to 128. Rows with the same b show
    weak scaling. Rows with the same global batch show strong scaling and have a `break_even`. If
    the last recipe is faster on the most GPUs, a row in which `guess` is True extrapolates to twice
    as many GPUs, at the same efficiency and cost.
    """
    joules = cells["joules_per_image"] * cells["samples"]
    timed = cells[cells["status"] == "ok"].assign(epoch_joules=joules, guess=False)
    found, double = [timed.iloc[:0]], timed.iloc[:0]
    for own in by_configuration(timed).values():
        alone = next(rows_of(nearest(own[own["gpus"] == 1])), None)
        size = alone.batch_size if alone else 0
        same = own[(own["batch_size"] == size) & own["speedup"].notna()].sort_values("gpus")
        if len(same) < 2 or same["speedup"].iloc[-1] <= 1:
            continue
        same = same.assign(**{f"fixed_global_batch_speedup{end}": math.nan for end in ENDS})
        split = own[(own["gpus"] > 1) & (own["gpus"] * own["batch_size"] == size)]
        split = split.assign(break_even=[break_even(alone, row) for row in rows_of(split)])
        known = ["other_seconds", "speedup_low", "epoch_seconds_low"]
        double = same.tail(1).assign(**dict.fromkeys(known, math.nan), guess=True, scope="")
        double[["gpus", "speedup"]] *= 2
        double["epoch_seconds"] /= 2
        double = double[double["verdict"] == "faster"]
        found += [same, split]
    return pd.concat([*found, double, trainings(study).assign(status="ok", guess=False)])
