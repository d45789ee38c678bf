"""The cells of a study in one table, for all of the page."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.registry.dataset import SYNTHETIC
from scaling.tables import accuracy
from scaling.tables.schema import StudyTables

SEVERITIES = {"error": "error", "warning": "warning", "info": "remark"}
LEARNS = 0.02
"""The largest loss in test accuracy to the reference of a cell that learns."""


COLUMNS = {
    "speedup": "speedup speedup_low speedup_high efficiency within_spread note",
    "costs": "peak_memory_bytes memory_capacity_bytes drift settled joules_per_image"
    " money_per_epoch",
    "provenance": "measured_as slurm_job_id slurm_gpus",
}
"""Columns of a cell by the tables that have them."""


def cells(tables: StudyTables) -> pd.DataFrame:
    """Return one row for each cell of the grid: times, speedup, shares of its epoch, accuracy.

    `gpu_seconds` are N · T of an epoch of T seconds on N GPUs, `shared` marks a single-GPU cell
    that uses another strategy's measurement. Random images have no accuracies.
    """
    used = tables.utilization.drop(columns=["count", "status"])
    found = tables.timing.merge(used, how="left", on=CELL_KEYS)
    for name, columns in COLUMNS.items():
        own = getattr(tables, name).drop_duplicates(CELL_KEYS)[[*CELL_KEYS, *columns.split()]]
        found = found.merge(own, how="left", on=CELL_KEYS)
    learned = accuracy.compare_batches(tables.timing, tables.accuracy).drop(columns="status")
    if len(learned) and tables.manifest["source"] != SYNTHETIC.name:
        learned = learned.rename(columns={"within_spread": "accuracy_within_spread"})
        found = found.merge(learned, how="left", on=CELL_KEYS)
    shared = found["measured_as"].fillna("").ne("")
    return found.assign(gpu_seconds=found["gpus"] * found["epoch_seconds"], shared=shared)


def fastest(cells: pd.DataFrame) -> Any | None:
    """Return the cell with the shortest epoch, or None."""
    timed = cells[cells["status"] == "ok"].dropna(subset="epoch_seconds")
    return next(timed.sort_values("epoch_seconds").itertuples(), None)


def learned(cells: pd.DataFrame) -> pd.Series:
    """Return for each cell whether its mean accuracy is within `LEARNS` of its reference's."""
    return cells["reference"].eq(True) | (cells["difference"] >= -LEARNS)


def shown_once(cells: pd.DataFrame) -> pd.DataFrame:
    """Return `cells`, with single-GPU cells that share a measurement once for each recipe."""
    return cells[~cells["shared"]]


def drifting(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells whose epochs still became longer or shorter at the end of a run."""
    return cells[(cells["count"] > 1) & cells["drift"].notna() & ~cells["settled"].eq(True)]


def by_status(cells: pd.DataFrame) -> str:
    """Return `3 ok, 2 out of memory`."""
    counts = cells["status"].value_counts(sort=False)
    return ", ".join(f"{count} {fmt.words(status)}" for status, count in counts.items())


def audit_counts(audit: pd.DataFrame) -> str:
    """Return `1 error, 2 warnings, 1 remark`, or `no findings`."""
    found = audit["severity"].value_counts()
    parts = [fmt.plural(found[key], name) for key, name in SEVERITIES.items() if key in found]
    return ", ".join(parts) or "no findings"
