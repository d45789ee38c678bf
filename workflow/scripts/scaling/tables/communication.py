"""Communication time of every multi-GPU cell, one row per cell and estimate."""

import math

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.tables import schema
from scaling.tables.timing import with_single_gpu

SUBTRACTIONS = {
    "subtraction": "epoch_seconds",
    "subtraction_without_loading": "epoch_seconds_without_loading",
}
"""Each estimate by subtraction, and the column of the timing table that it uses."""
BY_SUBTRACTION = "subtraction_without_loading"
PREFERRED = ["without_communication", "profiler", BY_SUBTRACTION, "subtraction"]
"""Estimates by preference: timed steps in memory, with and without exchange; the trace;
subtraction, which mistakes data waits that the GPU worked through for communication."""
EXPOSED = PREFERRED[:-1]
"""Estimates of exposed communication: whole epochs have all data waits in them."""
MOVING = PREFERRED[1:]
"""Estimates of all communication, for bandwidths: steps without exchange miss what overlaps."""


def communication(
    timing: pd.DataFrame,
    readings: pd.DataFrame | None = None,
    in_memory: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return the communication seconds per epoch of the multi-GPU cells of `timing`.

    `communication_seconds` is what communication adds to the epoch: the exposed part, if the
    estimate distinguishes it from the overlapped one. Only then `moving_seconds` is the time of all
    communication, which bandwidths divide by. By subtraction it is T(N,b) - T(1,b) / N, also below
    0. The instruments' `readings` (a published study has none) are per iteration, times the epoch's
    iterations; their total is the epoch in memory, or without loading if that was not measured.
    A cell without time or baseline keeps its rows.
    """
    several = timing[timing["gpus"] > 1]
    paired = with_single_gpu(several, timing, "batch_size")
    estimates = [_subtraction(paired, *pair) for pair in SUBTRACTIONS.items()]
    if readings is not None and in_memory is not None:
        estimates.append(_measured(several, readings, in_memory))
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


def _subtraction(paired: pd.DataFrame, estimate: str, seconds: str) -> pd.DataFrame:
    total, compute = paired[seconds], paired[f"single_{seconds}"] / paired["gpus"]
    parts = {"compute_seconds": compute, "communication_seconds": total - compute}
    unknown = dict.fromkeys(["moving_seconds", "spread_seconds", "run_std_seconds"], math.nan)
    return paired.assign(estimate=estimate, total_seconds=total, **parts, **unknown)


def _measured(times: pd.DataFrame, readings: pd.DataFrame, in_memory: pd.DataFrame) -> pd.DataFrame:
    read = readings.rename(columns={"communication_seconds": "moving_seconds"})
    table = times.drop(columns=["count", "runs"]).merge(read, on=CELL_KEYS)
    memory = in_memory[[*CELL_KEYS, "in_memory_epoch_seconds"]]
    table = table.merge(memory, how="left", on=CELL_KEYS)
    table["moving_seconds"] = table["moving_seconds"].where(table["overlapped_seconds"].notna())
    seconds = ["moving_seconds", "exposed_seconds", "spread_seconds", "run_std_seconds"]
    table[seconds] = table[seconds].mul(table["iterations"], axis=0)
    table["communication_seconds"] = table["exposed_seconds"]
    table["total_seconds"] = table["in_memory_epoch_seconds"].fillna(
        table["epoch_seconds_without_loading"]
    )
    table["compute_seconds"] = table["total_seconds"] - table["communication_seconds"]
    return table
