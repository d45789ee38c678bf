"""Compare two studies cell by cell."""

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.tables import noise

_TIMES = ["epoch_seconds", "epoch_seconds_min", "epoch_seconds_max", "count", "samples"]
_TIMES += ["runs", "epoch_seconds_run_std"]
VERDICTS = ["slower", "within noise", "faster", "not repeated", "only in A", "only in B"]
FAILED = ["oom", "oom_host", "timeout"]


def match(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Join two timing tables by cell, with columns a_… and b_…, the slowest b first.

    One GPU has no strategy: the first one with a time counts. `ratio` is a's seconds / b's, above 1
    where b is faster; `ratio_min` and `ratio_max` are its noise interval, by the `basis` of
    `noise.ratio`, which decides the `verdict` on b. Cells without times are left out.
    """
    table = _sided(a, "a").merge(_sided(b, "b"), how="outer", on=CELL_KEYS)
    absent = {"a_status": "not in the grid", "b_status": "not in the grid"}
    timed = table[["a_epoch_seconds", "b_epoch_seconds"]].notna()
    table = table[timed.any(axis=1)].fillna(absent)
    repeated = (table["a_count"] > 1) & (table["b_count"] > 1)
    table["ratio"] = table["a_epoch_seconds"] / table["b_epoch_seconds"]
    table[["ratio_min", "ratio_max", "basis"]] = noise.ratios(table, "a_", "b_")
    table["verdict"] = "within noise"
    for verdict, holds in {
        "faster": table["ratio_min"] > 1,
        "slower": table["ratio_max"] < 1,
        "not repeated": ~repeated,
        "only in A": table["b_epoch_seconds"].isna(),
        "only in B": table["a_epoch_seconds"].isna(),
    }.items():
        table["verdict"] = table["verdict"].mask(holds, verdict)
    return table.sort_values("ratio", kind="stable", ignore_index=True)


def too_slow(cells: pd.DataFrame, mark: float) -> pd.DataFrame:
    """Return the cells with the whole noise interval below `mark`, and those that only b failed in.

    An unrepeated cell has no interval. Failed means that b ran out of memory or time.
    """
    failed = (cells["verdict"] == "only in A") & cells["b_status"].isin(FAILED)
    return cells[failed | (cells["ratio_max"] < mark)]


def _sided(timing: pd.DataFrame, side: str) -> pd.DataFrame:
    """Return one side's times, with one row for each single-GPU cell; see `match`."""
    table = timing.assign(strategy=timing["strategy"].mask(timing["gpus"] == 1, ""))
    timed_first = table["epoch_seconds"].isna().sort_values(kind="stable").index
    table = table.loc[timed_first].drop_duplicates(CELL_KEYS).set_index(CELL_KEYS)
    return table[["status", *_TIMES]].add_prefix(f"{side}_").reset_index()
