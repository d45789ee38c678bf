"""Ratios of times, speedups and those of two studies, and which of them exceed noise.

If everything compared has two runs or more (processes, of one seed or several), noise is the
variation between runs: the 95 % interval of `statistics.margin`. Else it is the variation between
epochs: the ratios of the extremes of both times, too little, as a whole process can be slower.
"""

from typing import Any

import numpy as np
import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.core.statistics import margin
from scaling.tables import schema
from scaling.tables.timing import with_single_gpu

LONE_READING = 2.0
"""Assumed uncertainty of a single reading: half to double its value."""
RATIOS = ("speedup", "efficiency", "fixed_global_batch_", "within_")
"""How the columns of ratios begin."""
UNLIKE = "no ratio: one GPU ran with"
"""How the note of a cell begins whose baseline is another program."""
_TIMES = ["epoch_seconds", "epoch_seconds_min", "epoch_seconds_max", "count", "samples"]
_TIMES += ["runs", "epoch_seconds_run_std"]
VERDICTS = ["slower", "within noise", "faster", "not repeated", "only in A", "only in B"]
FAILED = ["oom", "oom_host", "timeout"]


def ratios(
    table: pd.DataFrame, one: str, other: str, seconds: str = "epoch_seconds"
) -> pd.DataFrame:
    """Return the noise interval of the ratio of two times in each row of `table`: `low`, `high`.

    The times are the columns with the prefixes `one` and `other` before their usual names. NaN for
    a time measured once. Between runs, logarithms are compared: their deviations are relative.
    """

    def both(name: str) -> Any:
        return np.array([table[one + name], table[other + name]], float)

    times, shortest, longest, spreads = (
        both(seconds + end) for end in ("", "_min", "_max", "_run_std")
    )
    # A time without loading may be 0.
    with np.errstate(all="ignore"):
        off = margin(spreads / times, both("runs"))
        whole, within = times[0] / times[1], np.isnan(off)
        low = np.where(within, shortest[0] / longest[1], whole * np.exp(-off))
        high = np.where(within, longest[0] / shortest[1], whole * np.exp(off))
    found = pd.DataFrame({"low": low, "high": high}, table.index)
    found.loc[~(both("count").min(axis=0) > 1)] = np.nan
    return found


def speedup(timing: pd.DataFrame, costs: pd.DataFrame) -> pd.DataFrame:
    """Return the speedups T(1,b) / T(N,b), one row per row of `timing`, and efficiency, that / N.

    The batch per GPU is fixed, in `fixed_global_batch_speedup` the global one: T(1,N·b) / T(N,b).
    `within_spread` tells whether the noise interval contains 1. A cell that ran without a switch of
    its baseline, by `costs`, has no ratio but a `note`, as DataParallel without compiled steps.
    """
    table = with_single_gpu(timing, timing, "batch_size")
    gpus, seconds = table["gpus"], table["epoch_seconds"]
    table["global_batch_size"] = gpus * table["batch_size"]
    keys = ["recipe", "strategy", "global_batch_size"]
    fixed = with_single_gpu(table[keys], timing, "global_batch_size")
    table = table.join(fixed.filter(like="single_").add_prefix("fixed_"))
    table["speedup"] = table["single_epoch_seconds"] / seconds
    table["fixed_global_batch_speedup"] = table["fixed_single_epoch_seconds"] / seconds
    table["efficiency"] = table["speedup"] / gpus
    ends = ratios(table, "single_", "").where(gpus > 1)
    table[["speedup_low", "speedup_high"]] = ends
    around = (ends["low"] <= 1) & (ends["high"] >= 1)
    table["within_spread"] = around.astype(object).where(ends["low"].notna(), None)
    lacking = pd.Series(_lacking(table, costs), table.index, str)
    table.loc[lacking != "", [name for name in table if str(name).startswith(RATIOS)]] = None
    said = UNLIKE + " " + lacking + ", which this cell cannot have"
    return schema.arrange("speedup", table.assign(note=said.where(lacking != "", "")))


def _lacking(cells: pd.DataFrame, costs: pd.DataFrame) -> list[str]:
    """Name the switches of each cell's baseline on one GPU that the cell itself ran without."""
    switches = costs.set_index(CELL_KEYS)["switches"].dropna()
    found = []
    for recipe, strategy, gpus, batch in cells[CELL_KEYS].itertuples(index=False):
        single = str(switches.get((recipe, strategy, 1, batch), ""))
        own = str(switches.get((recipe, strategy, gpus, batch), single)).split(", ")
        found.append(", ".join(name for name in single.split(", ") if name not in own))
    return found


def match(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Return two timing tables joined by cell, with columns a_… and b_…, the slowest b first.

    One GPU has no strategy: the first one with a time counts. `ratio` is a's seconds / b's, above 1
    where b is faster; `ratio_min` and `ratio_max` are its noise interval, which decides the
    `verdict` on b. Cells without times are left out.
    """
    table = _sided(a, "a").merge(_sided(b, "b"), how="outer", on=CELL_KEYS)
    absent = {"a_status": "not in the grid", "b_status": "not in the grid"}
    timed = table[["a_epoch_seconds", "b_epoch_seconds"]].notna()
    table = table[timed.any(axis=1)].fillna(absent)
    repeated = (table["a_count"] > 1) & (table["b_count"] > 1)
    table["ratio"] = table["a_epoch_seconds"] / table["b_epoch_seconds"]
    table[["ratio_min", "ratio_max"]] = ratios(table, "a_", "b_")
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
