"""Speedup and efficiency of every cell, in two views of one grid.

per epoch            T(1,b) / T(N,b)            samples and batch per GPU fixed
fixed global batch   T(1,N·b) / T(N,b)          samples and global batch fixed

Each efficiency is speedup / N. A cell that ran without a switch of its baseline has no ratio, as
DataParallel without compiled steps.
"""

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.tables import noise, schema
from scaling.tables.timing import with_single_gpu

RATIOS = ("speedup", "efficiency", "fixed_global_batch_", "within_")
"""How the columns of ratios begin."""
UNLIKE = "no ratio: one GPU ran with"
"""How the note of a cell begins whose baseline is another program."""


def speedup(timing: pd.DataFrame, costs: pd.DataFrame) -> pd.DataFrame:
    """Return the speedups, one row per row of `timing`.

    `costs` has each cell's switches. `speedup_low` and `speedup_high` are the noise interval, by
    the `basis` of `noise.ratio`; `within_spread` is True if it contains 1. Empty on 1 GPU, or if
    either time was measured once. A cell without time or baseline keeps its row; `note` says which
    switches its baseline had alone.
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
    ends = noise.ratios(table, "single_", "").where(gpus > 1)
    table[["speedup_low", "speedup_high", "basis"]] = ends
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
