"""Communication time of every multi-GPU cell, one row per cell and estimate."""

import math
from typing import Any

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.tables import schema
from scaling.tables.timing import no_single_gpu_time, with_single_gpu

SUBTRACTIONS = {
    "subtraction": "epoch_seconds",
    "subtraction_without_loading": "epoch_seconds_without_loading",
}
"""Each estimate by subtraction, and the column of the timing table that it uses."""
BY_SUBTRACTION = "subtraction_without_loading"
EXPOSED = ["without_communication", "profiler", BY_SUBTRACTION]
"""Estimates of exposed communication by preference: timed steps in memory, with and without
exchange; the trace; subtraction, which mistakes data waits that the GPU worked through for
communication."""
MOVING = ["profiler", BY_SUBTRACTION, "subtraction"]
"""Estimates of all communication for bandwidths, by preference."""
TRACE_RESOLUTION_SECONDS = 1e-9
"""Clock resolution of a trace: a smaller overlap is a rounding error."""


def communication(
    timing: pd.DataFrame,
    readings: pd.DataFrame | None = None,
    in_memory: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return the communication seconds per epoch of the multi-GPU cells of `timing`.

    `communication_seconds` is what communication adds to the epoch, so that compute + communication
    = total. It is the exposed communication, if the estimate distinguishes exposed from overlapped.

    By subtraction: compute = T(1,b) / N, communication = T(N,b) - T(1,b) / N. A negative value is
    kept, with a `note`. Subtraction cannot distinguish exposed from overlapped communication, so
    these two stay empty, as does `moving_seconds`, the time of all communication, which bandwidths
    divide by. That is the median over ranks of their totals; the separate medians of the two parts
    need not add up to it.

    The instruments' `readings` (`measurements.readings`; a published study has none) are per
    iteration, times the epoch's iterations; their total is the epoch in memory
    (`epoch_parts.in_memory`), or the time without loading if that was not measured.
    `spread_seconds` is the range of repeated readings, `run_std_seconds` the standard deviation
    between runs. A cell without time or baseline keeps its rows; `note` says what is missing.
    """
    estimates = [_subtraction(timing, estimate) for estimate in SUBTRACTIONS]
    if readings is not None and in_memory is not None:
        estimates.append(_measured(timing, readings, in_memory))
    return schema.arrange("communication", pd.concat(estimates))


def preferred_estimates(table: pd.DataFrame, estimates: list[str] = EXPOSED) -> pd.DataFrame:
    """Return each cell's row of the first of these estimates that has seconds for it."""
    known = table[table["communication_seconds"].notna() & table["estimate"].isin(estimates)]
    order = known["estimate"].map(estimates.index).sort_values(kind="stable").index
    return known.loc[order].drop_duplicates(CELL_KEYS).sort_index()


def drop_overlapped_loading(
    estimates: pd.DataFrame, timing: pd.DataFrame, in_memory: pd.DataFrame
) -> pd.DataFrame:
    """Drop subtraction without loading where it is below the epoch in memory.

    There the GPU worked while the host waited, so that wait must not be subtracted.
    """
    memory = in_memory[[*CELL_KEYS, "in_memory_epoch_seconds"]]
    cells = timing.merge(memory, how="left", on=CELL_KEYS)
    cells["short"] = cells["in_memory_epoch_seconds"] > cells["epoch_seconds_without_loading"]
    cells = with_single_gpu(cells, cells, "batch_size")
    short = cells.loc[cells["short"] | cells["single_short"].eq(True), CELL_KEYS]
    lost = pd.MultiIndex.from_frame(estimates[CELL_KEYS]).isin(pd.MultiIndex.from_frame(short))
    return estimates[~(lost & estimates["estimate"].eq(BY_SUBTRACTION))]


def _subtraction(timing: pd.DataFrame, estimate: str) -> pd.DataFrame:
    seconds = SUBTRACTIONS[estimate]
    table = with_single_gpu(timing[timing["gpus"] > 1], timing, "batch_size")
    table["estimate"] = estimate
    table["total_seconds"] = table[seconds]
    table["compute_seconds"] = table[f"single_{seconds}"] / table["gpus"]
    table["communication_seconds"] = table["total_seconds"] - table["compute_seconds"]
    unknown = ["exposed_seconds", "overlapped_seconds", "moving_seconds", "spread_seconds"]
    table[[*unknown, "run_std_seconds"]] = math.nan
    table["note"] = [_note(row) for row in table.itertuples()]
    return table


def _measured(
    timing: pd.DataFrame, readings: pd.DataFrame, in_memory: pd.DataFrame
) -> pd.DataFrame:
    times = timing[timing["gpus"] > 1].drop(columns="runs")
    table = times.merge(readings, on=CELL_KEYS, suffixes=("", "_read"))
    table = table.merge(in_memory.drop(columns=["count", "runs"]), how="left", on=CELL_KEYS)
    separated = table["overlapped_seconds"].notna()
    table["moving_seconds"] = table["communication_seconds"].where(separated)
    spreads = ("spread_seconds", "run_std_seconds")
    for part in ("exposed_seconds", "overlapped_seconds", "moving_seconds", *spreads):
        table[part] = table[part] * table["iterations"]
    rounding = table["overlapped_seconds"] < TRACE_RESOLUTION_SECONDS
    table.loc[rounding, "overlapped_seconds"] = 0.0
    table["communication_seconds"] = table["exposed_seconds"]
    table["total_seconds"] = table["in_memory_epoch_seconds"].fillna(
        table["epoch_seconds_without_loading"]
    )
    table["compute_seconds"] = table["total_seconds"] - table["communication_seconds"]
    negative = table["communication_seconds"] < 0
    table.loc[negative, "note"] = "communication below 0: the epoch was no slower with it"
    untimed = table["epoch_seconds"].isna()
    table.loc[untimed, "note"] = "no time (status " + table["status"] + ")"
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
