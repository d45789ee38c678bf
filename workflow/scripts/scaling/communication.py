"""Communication seconds of every multi-GPU cell, one row per cell and estimate."""

import math
from typing import Any

import pandas as pd

from scaling import tables
from scaling.tables import KEYS, no_single_gpu_time, with_single_gpu

COLUMNS = [
    *(*KEYS, "estimate", "total_seconds", "compute_seconds", "communication_seconds"),
    *("exposed_seconds", "overlapped_seconds", "note"),
]
SUBTRACTIONS = {
    "subtraction": "epoch_seconds",
    "subtraction_without_loading": "epoch_seconds_without_loading",
}
"""Each estimate by subtraction, and the column of the timing table it subtracts in."""


def communication(timing: pd.DataFrame) -> pd.DataFrame:
    """The table of communication seconds per epoch: the multi-GPU cells of `timing`, `COLUMNS`.

    By subtraction: compute = T(1,b) / N, communication = T(N,b) - T(1,b) / N. A negative value is
    kept, and `note` says so. Subtraction cannot tell exposed from overlapped communication: these
    two stay empty. A cell without time or baseline keeps its rows; `note` says what is missing.
    """
    estimates = [_subtraction(timing, estimate) for estimate in SUBTRACTIONS]
    return tables.arrange(pd.concat(estimates), COLUMNS)


def _subtraction(timing: pd.DataFrame, estimate: str) -> pd.DataFrame:
    seconds = SUBTRACTIONS[estimate]
    table = with_single_gpu(timing[timing["gpus"] > 1], timing, "batch_size")
    table["estimate"] = estimate
    table["total_seconds"] = table[seconds]
    table["compute_seconds"] = table[f"single_{seconds}"] / table["gpus"]
    table["communication_seconds"] = table["total_seconds"] - table["compute_seconds"]
    table["exposed_seconds"] = table["overlapped_seconds"] = math.nan
    table["note"] = [_note(row) for row in table.itertuples()]
    return table


def _note(row: Any) -> str:
    if math.isnan(row.epoch_seconds):
        return f"no time (status {row.status})"
    if math.isnan(row.single_epoch_seconds):
        return no_single_gpu_time(row.batch_size, row.single_status)
    if math.isnan(row.communication_seconds):
        return "no time without loading, of the cell or of its single-GPU baseline"
    if row.communication_seconds < 0:
        return "communication below 0: the cell took less than T(1,b) / N"
    return ""
