"""Ratios of times, speedups and those of two studies, and which of them exceed noise."""

from typing import Any

import numpy as np
import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.core.statistics import margin
from scaling.tables import schema
from scaling.tables.schema import StudyTables
from scaling.tables.timing import with_single_gpu
from scaling.tables.work import factor

LONE_READING = 2.0
"""Assumed uncertainty of a single reading: half to double its value."""
RATIOS = ["speedup", "efficiency", "fixed_global_batch_speedup", "within_spread"]
RATIOS += ["speedup_low", "speedup_high"]
UNLIKE = "no ratio: one GPU ran with"
"""How the note of a cell begins whose baseline is another program."""
VERDICTS = ["slower", "within noise", "faster", "not repeated", "only in A", "only in B"]


def ratios(
    table: pd.DataFrame, one: str, other: str, seconds: str = "epoch_seconds"
) -> pd.DataFrame:
    """Return the noise interval of the ratio of two times in each row of `table`: `low`, `high`.

    The times' columns have the prefixes `one` and `other`. With two runs of each or more it is the
    95 % interval between runs, of logarithms; else the ratios of the extremes of epochs, though a
    whole process can be slower. NaN for a time measured once.
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


def speedup(tables: StudyTables) -> pd.DataFrame:
    """Return the speedup of each cell, T(1,b) / T(N,b), and its efficiency, that / N.

    `fixed_global_batch_speedup` is T(1,N·b) / T(N,b). A cell that ran without a switch of its
    baseline has no ratio but a `note`, as DataParallel without compiled steps; that of a cell
    which is in the grid for strong scaling says so.
    """
    timing = tables.timing
    table = with_single_gpu(timing, timing, "batch_size")
    gpus, seconds = table["gpus"], table["epoch_seconds"]
    keys = table[["recipe"]].assign(global_batch=gpus * table["batch_size"])
    fixed = with_single_gpu(keys, timing, "global_batch").assign(**table[["samples", "unit"]])
    same = fixed["single_epoch_seconds"] * factor(fixed, "single_", "")
    more = factor(table, "single_", "")
    table["speedup"] = table["single_epoch_seconds"] / seconds * more
    table["fixed_global_batch_speedup"] = same / seconds
    table["efficiency"] = table["speedup"] / gpus
    ends = ratios(table, "single_", "").mul(more, axis=0).where(gpus > 1)
    table[["speedup_low", "speedup_high"]] = ends
    around = (ends["low"] <= 1) & (ends["high"] >= 1)
    table["within_spread"] = around.astype(object).where(ends["low"].notna(), None)
    lacking = pd.Series(_lacking(table, tables.costs), table.index, str)
    table.loc[lacking != "", RATIOS] = None
    said = UNLIKE + " " + lacking + ", which this cell cannot have"
    strong = "strong scaling alone: of the global batch of 1 × " + keys["global_batch"].astype(str)
    table["note"] = strong.where(same.notna() & table["single_epoch_seconds"].isna(), "")
    return schema.arrange("speedup", table.assign(note=said.where(lacking != "", table["note"])))


def _lacking(cells: pd.DataFrame, costs: pd.DataFrame) -> list[str]:
    """Return the switches of each cell's baseline on one GPU that the cell itself ran without."""
    switches = costs.set_index(CELL_KEYS)["switches"].dropna()
    found = []
    for recipe, strategy, gpus, batch in cells[CELL_KEYS].itertuples(index=False):
        single = str(switches.get((recipe, "", 1, batch), ""))
        own = str(switches.get((recipe, strategy, gpus, batch), single)).split(", ")
        found.append(", ".join(name for name in single.split(", ") if name not in own))
    return found


def match(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Return two timing tables joined by cell, with columns a_… and b_…, the slowest b first.

    `ratio` is a's seconds / b's, whose noise interval, `ratio_min` to `ratio_max`, decides the
    `verdict` on b. Cells without times are left out.
    """
    table = _sided(a, "a").merge(_sided(b, "b"), how="outer", on=CELL_KEYS)
    times = table[["a_epoch_seconds", "b_epoch_seconds"]].notna()
    absent = dict.fromkeys(["a_status", "b_status"], "not in the grid")
    table = table[times.any(axis=1)].fillna(absent)
    more = factor(table, "a_", "b_")
    table["ratio"] = table["a_epoch_seconds"] / table["b_epoch_seconds"] * more
    table[["ratio_min", "ratio_max"]] = ratios(table, "a_", "b_").mul(more, axis=0)
    verdicts = {
        "only in A": table["b_epoch_seconds"].isna(),
        "only in B": table["a_epoch_seconds"].isna(),
        "not repeated": table["ratio_min"].isna(),
        "slower": table["ratio_max"] < 1,
        "faster": table["ratio_min"] > 1,
    }
    table["verdict"] = np.select(list(verdicts.values()), list(verdicts), "within noise")
    return table.sort_values("ratio", kind="stable", ignore_index=True)


def _sided(timing: pd.DataFrame, side: str) -> pd.DataFrame:
    times = [f"epoch_seconds{end}" for end in ("", "_min", "_max")]
    shown = ["status", *times, "count", "samples", "unit", "runs", "epoch_seconds_run_std"]
    return timing.set_index(CELL_KEYS)[shown].add_prefix(f"{side}_").reset_index()
