"""Time of every cell, from its run records: seconds per epoch."""

import math
from collections.abc import Iterable
from statistics import stdev
from typing import Any

import pandas as pd

from scaling.core.records.kind import Role
from scaling.core.records.run import RunRecord
from scaling.tables.runs import Run, Seeds, table_of_cells, worst_status

TIMED = ("ok", "diverged")
"""Statuses whose measured epochs count: a NaN loss does not change the time."""
_OVER_RANKS = {
    **{"seconds": "max", "loader_seconds": "max", "power_capped_seconds": "max"},
    **{"iterations": "first", "samples": "sum"},
}


def epochs(records: Iterable[RunRecord], *roles: Role) -> pd.DataFrame:
    """Return the epochs of these runs with these roles, indexed by run number and epoch.

    Seconds are the longest of all ranks, `power_capped_seconds` NaN if not counted; samples are
    summed. While one rank waits for data, the others wait for it in the all-reduce: such a stall is
    loading, not communication.
    """
    rows = [
        {**row, "run": number}
        for number, record in enumerate(records)
        for row in record["epochs"]
        if row["role"] in roles
    ]
    table = pd.DataFrame(rows, columns=["run", "epoch", *_OVER_RANKS])
    counted = table.astype({"power_capped_seconds": float, "loader_seconds": float})
    return counted.groupby(["run", "epoch"]).agg(_OVER_RANKS)


def joules(records: Iterable[RunRecord], *roles: Role) -> float:
    """Return the energy of all GPUs of these runs in epochs of these roles; NaN if incomplete."""
    rows = [row for record in records for row in record["epochs"] if row["role"] in roles]
    read = [gpu["energy_joules"] for row in rows for gpu in row["gpu_readings"]]
    known = bool(rows) and all(row["gpu_readings"] for row in rows)
    return sum(math.nan if one is None else one for one in read) if known else math.nan


def timing(runs: list[Run]) -> pd.DataFrame:
    """Return the seconds per epoch, one row per cell, the epochs of its runs pooled.

    Values are of the median epoch (the mean of the two middle ones for an even count), so that
    epoch_seconds = epoch_seconds_without_loading + loader_seconds, and `spread`. A cell without a
    timed epoch has none.
    """
    return table_of_cells("timing", runs, _figures)


def _figures(seeds: Seeds) -> dict[str, Any]:
    records = [record for record in seeds if record is not None]
    messages = [record["message"] for record in records if record["message"]]
    if len(records) < len(seeds):
        messages.append(f"{len(seeds) - len(records)} of {len(seeds)} runs have no record")
    row = {"status": worst_status(seeds), "message": "; ".join(dict.fromkeys(messages))}
    timed = epochs((record for record in records if record["status"] in TIMED), "measured")
    if timed.empty:
        return row
    ordered = timed.sort_values(["seconds", "loader_seconds"], kind="stable")
    middle = ordered.iloc[(len(timed) - 1) // 2 : len(timed) // 2 + 1].mean()
    without_loading = timed["seconds"] - timed["loader_seconds"]
    return row | {
        "epoch_seconds": middle["seconds"],
        "epoch_seconds_without_loading": middle["seconds"] - middle["loader_seconds"],
        "loader_seconds": middle["loader_seconds"],
        **spread("epoch_seconds", timed["seconds"]),
        **spread("epoch_seconds_without_loading", without_loading),
        "count": len(timed),
        "runs": timed.index.get_level_values("run").nunique(),
        "iterations": timed["iterations"].iloc[0],
        "samples": timed["samples"].iloc[0],
    }


def spread(name: str, seconds: pd.Series) -> dict[str, float]:
    """Return minimum and maximum of a time over all epochs, and over the medians of its runs.

    `…_run_std` is the sample standard deviation of these. The first level of the index of `seconds`
    is the number of the run.
    """
    medians = seconds.groupby(level=0).median()
    return {
        f"{name}_min": seconds.min(),
        f"{name}_max": seconds.max(),
        f"{name}_run_min": medians.min(),
        f"{name}_run_max": medians.max(),
        f"{name}_run_std": stdev(medians) if len(medians) > 1 else math.nan,
    }


def with_single_gpu(table: pd.DataFrame, timing: pd.DataFrame, batch_size: str) -> pd.DataFrame:
    """Return `table` with its single-GPU baseline: every column of `timing` as `single_…`.

    The baseline of a row is the 1-GPU row of `timing` with the same recipe, strategy and batch size
    (column `batch_size`); without one the columns are NaN.
    """
    single = timing[timing["gpus"] == 1].add_prefix("single_")
    own = ["recipe", "strategy", batch_size]
    other = ["single_recipe", "single_strategy", "single_batch_size"]
    return table.merge(single, how="left", left_on=own, right_on=other, validate="many_to_one")
