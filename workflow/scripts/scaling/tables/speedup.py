"""Speedup and efficiency of every cell, in three views of one grid.

strong, per epoch    T(1,b) / T(N,b)            samples and batch per GPU fixed
weak, per step       N · t(1,b) / t(N,b)        batch per GPU fixed, t = T / iterations
fixed global batch   T(1,N·b) / T(N,b)          samples and global batch fixed

Each efficiency is speedup / N. A cell that ran without a switch of its baseline has no ratio, as
DataParallel without compiled steps. In the weak view a partial last batch counts as a whole step,
so with few steps per epoch the weak speedup can exceed N by that rounding alone.
"""

from typing import Any

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.tables import noise, schema
from scaling.tables.timing import with_single_gpu

VIEWS = {
    "speedup": "speedup",
    "weak_speedup": "weak speedup",
    "fixed_global_batch_speedup": "fixed global batch speedup",
}
"""The column of each view's speedup, and its name in a sentence."""
RATIOS = ("speedup", "efficiency", "weak_", "fixed_global_batch_", "within_")
"""How the columns of ratios begin."""
UNLIKE = "no ratio: one GPU ran with"
"""How the note of a cell begins whose baseline is another program."""
ROUNDING = 1e-6
"""Relative difference of two speedups that floating-point rounding can cause."""


def speedup(timing: pd.DataFrame, costs: pd.DataFrame) -> pd.DataFrame:
    """Return the speedups, one row per row of `timing`.

    `costs` has each cell's switches; it is empty for a published study. `speedup_min` and
    `speedup_max` combine the extremes of both times. `…_low` and `…_high` are the noise interval,
    by the `basis` of `noise.ratio`; `within_spread` is True if it contains 1. Empty without a
    comparison: on 1 GPU, or if either time was measured once. `runs` are the cell's. A cell without
    time or baseline keeps its row; `note` says which switches its baseline had alone.
    """
    table = with_single_gpu(timing, timing, "batch_size")
    gpus, seconds = table["gpus"], table["epoch_seconds"]
    table["global_batch_size"] = gpus * table["batch_size"]
    keys = ["recipe", "strategy", "global_batch_size"]
    fixed = with_single_gpu(table[keys], timing, "global_batch_size")
    table = table.join(fixed.filter(like="single_").add_prefix("fixed_"))
    for view, side in (("fixed_global_batch_speedup", "fixed_single_"), ("speedup", "single_")):
        table[view] = table[f"{side}epoch_seconds"] / seconds
        table[view.replace("speedup", "efficiency")] = table[view] / gpus
        ends = noise.ratios(table, side, "").where(gpus > 1)
        table[[f"{view}_low", f"{view}_high", "basis"]] = ends
    table["speedup_min"] = table["single_epoch_seconds_min"] / table["epoch_seconds_max"]
    table["speedup_max"] = table["single_epoch_seconds_max"] / table["epoch_seconds_min"]
    single_step_seconds = table["single_epoch_seconds"] / table["single_iterations"]
    table["weak_efficiency"] = single_step_seconds / (seconds / table["iterations"])
    table["weak_speedup"] = gpus * table["weak_efficiency"]
    around = (ends["low"] <= 1) & (ends["high"] >= 1)
    table["within_spread"] = around.astype(object).where(ends["low"].notna(), None)
    lacking = pd.Series(_lacking(table, costs), table.index, str)
    ratios = [name for name in map(str, table) if name.startswith(RATIOS)]
    table.loc[lacking != "", ratios] = None
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


def why_above_gpus(row: Any, view: str) -> list[str]:
    """Explain why a `view`'s speedup in a row exceeds N, if it can be explained.

    The weak speedup is the strong one times N · iterations on N GPUs / iterations on one: if it is
    larger, the last batch is partial, and the strong one remains to be explained. Noise explains a
    speedup whose lower end (`noise.ratio`) is at most N.
    """
    ratio, reasons = getattr(row, view), []
    if view == "weak_speedup":
        steps = row.weak_speedup / row.speedup
        low = row.speedup_low * steps
        if steps > 1 + ROUNDING:
            reasons = ["a partial last batch counts as a whole step"]
            ratio, low = row.speedup, row.speedup_low
    else:
        low = getattr(row, f"{view}_low")
    if ratio <= row.gpus:
        return reasons
    return [*reasons, noise.within(row.basis)] if low <= row.gpus else []
