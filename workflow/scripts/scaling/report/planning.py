"""Recommend a configuration, and compare numbers of GPUs by time and cost."""

import math
from typing import Any

import pandas as pd

from scaling.claims.claim import nearest
from scaling.core.grid import CELL_KEYS, REFERENCE_BATCH
from scaling.report.cells import fastest, learned
from scaling.tables.schema import StudyTables, by_configuration, interval, on_cpu, rows_of

LAB = "plain"
"""Name of the recipe that trains as in the lab's handout."""
STRONG = [*interval("fixed_global_batch_speedup"), "break_even_min", "break_even_max"]
"""Columns that compare with one GPU at the same global batch."""


def recommended(study: StudyTables, cells: pd.DataFrame) -> Any | None:
    """Return the row to recommend, or None on a CPU or if no row qualifies.

    First choice: the time-to-accuracy training with the shortest whole run. It needs two or more
    seeds, and all seeds must have reached the accuracy. Second choice: the fastest row of `cells`
    that is accurate (see `learned`) and has several seeds. Third choice: the fastest accurate row.
    """
    if on_cpu(study.provenance):
        return None
    trained = trainings(study).query("reached == seeds and seeds > 1")
    shortest = next(rows_of(trained.sort_values(["run_seconds", "training_seconds"])), None)
    good = cells[learned(cells)]
    return shortest or fastest(good[good["test_accuracy_count"] > 1]) or fastest(good)


def trainings(study: StudyTables) -> pd.DataFrame:
    """Return the time-to-accuracy trainings, with seconds and joules of an epoch."""
    found = study.trained_to_accuracy.sort_values("gpus", kind="stable")
    seconds = found["training_seconds"] / found["epochs"]
    return found.assign(
        epoch_seconds=seconds,
        gpu_seconds=seconds * found["gpus"],
        epoch_joules=found["joules"] / found["epochs"],
        job_seconds=found["run_seconds"],
    ).rename(columns=dict(zip(interval("speedup"), STRONG, strict=False)))


def from_the_lab(study: StudyTables) -> pd.DataFrame:
    """Return a row per machine with the speedup of the fastest recipe over the lab's (`LAB`).

    `factor` is the epoch time of `LAB` / that of `recipe`, on one GPU with batch size 128.
    """
    runs = study.provenance.query(f"gpus == 1 and batch_size == {REFERENCE_BATCH}")
    seconds = runs.pivot_table("epoch_seconds", "machine", "recipe", "median", dropna=False)
    others = seconds.drop(columns=LAB, errors="ignore").median().dropna()
    if LAB not in seconds or others.empty:
        return pd.DataFrame(columns=["recipe", "factor"])
    best = str(others.idxmin())
    return (seconds[LAB] / seconds[best]).dropna().to_frame("factor").assign(recipe=best)


def changes(study: StudyTables) -> pd.DataFrame:
    """Return a row for each batch size on one GPU and each recipe but the first, from `LAB` on.

    Recipes have the order of the configuration; those without a run at a batch size are skipped
    there. `factor` is the previous recipe's epoch time / that of `recipe`: the median over the
    `common_machines` machines that ran both, with their range. Batch sizes with fewer than three
    recipes are left out.
    """
    runs = study.provenance.query("gpus == 1")
    order = list(study.timing["recipe"].unique())
    order = order[order.index(LAB) :] if LAB in order else []
    seconds = runs.pivot_table("epoch_seconds", ["batch_size", "machine"], "recipe", "median")
    columns = {"factor": "median", "factor_min": "min", "factor_max": "max"}
    columns |= {"common_machines": "count"}
    found = [pd.DataFrame(columns=["batch_size", "recipe", *columns])]
    for size, own in seconds.reindex(columns=order).groupby("batch_size"):
        known = own.dropna(axis=1, how="all")
        factors = (known.shift(axis=1) / known).agg([*columns.values()]).T
        rows = factors.set_axis([*columns], axis=1).dropna().rename_axis("recipe")
        if len(known.columns) > 2:
            found.append(rows.reset_index().assign(batch_size=size))
    return pd.concat(found, ignore_index=True).assign(strategy="", gpus=1)


def how_many_gpus(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return rows that compare several GPUs with one GPU, then the rows of `trainings`.

    Each recipe and strategy is compared at its batch size nearest to 128 on one GPU. Rows with this
    batch size per GPU show weak scaling. Rows with this global batch show strong scaling.
    `break_even_…` is NaN unless the strong speedup (the interval's lower end, if known) is above 1.
    """
    joules = cells["joules_per_image"] * cells["samples"]
    timed = cells[cells["status"] == "ok"].assign(epoch_joules=joules)
    found = [timed.iloc[:0]]
    for own in by_configuration(timed).values():
        alone = next(rows_of(nearest(own[own["gpus"] == 1])), None)
        size = alone.batch_size if alone else 0
        same = own[(own["batch_size"] == size) & own["speedup"].notna()].sort_values("gpus")
        if len(same) < 2:
            continue
        same = same.assign(**dict.fromkeys(STRONG, math.nan))
        split = own[(own["gpus"] > 1) & (own["gpus"] * own["batch_size"] == size)]
        found += [same, split]
    # Strategies of a recipe share its row on one GPU.
    shared = pd.concat(found).drop_duplicates(CELL_KEYS)
    rows = pd.concat([shared, trainings(study).assign(status="ok")], ignore_index=True)
    least = rows["fixed_global_batch_speedup_low"].fillna(rows["fixed_global_batch_speedup"])
    return rows.assign(**rows[["break_even_min", "break_even_max"]].where(least > 1))
