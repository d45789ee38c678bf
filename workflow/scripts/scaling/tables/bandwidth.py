"""Bytes that a cell communicates, and its bandwidth relative to the measured peak."""

import math

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.registry.engine import ENGINES
from scaling.registry.strategy import STRATEGIES
from scaling.tables import schema
from scaling.tables.communication import MOVING, TRACE, preferred
from scaling.tables.limits import GB, ring_factor


def swept_gradient_bytes(interconnect: pd.DataFrame) -> float:
    """Return K, the bytes of all gradients, from the interconnect sweep; NaN without a sweep."""
    sizes = interconnect.loc[interconnect["kind"] == "gradients", "message_bytes"]
    return float(sizes.iloc[0]) if len(sizes) else math.nan


def peak_gb_per_s(interconnect: pd.DataFrame, engine: str, strategy: str, gpus: int) -> float:
    """Return the measured bus bandwidth, in GB/s, for a cell's messages; NaN without a sweep.

    2(N-1)/N · sum of bytes / sum of seconds over the sweep's rows of the engine's or strategy's
    kind for the same number of GPUs. NaN also if the sweep's sums were wrong.
    """
    swept = interconnect[interconnect["gpus"] == gpus]
    kinds = ENGINES.find(engine).sweep_kinds if engine in ENGINES.names() else {}
    own = swept[swept["kind"] == kinds.get(strategy)]
    rows = own if len(own) else swept[swept["kind"] == STRATEGIES.find(strategy).sweep_kind]
    if rows.empty or not rows["correct"].all():
        return math.nan
    return float(ring_factor(gpus) * rows["message_bytes"].sum() / rows["seconds"].sum() / GB)


def bandwidth(
    timing: pd.DataFrame,
    communication: pd.DataFrame,
    interconnect: pd.DataFrame,
    gradient_bytes: float,
    costs: pd.DataFrame,
) -> pd.DataFrame:
    """Return the table of bandwidths, one row per multi-GPU cell of `timing`.

    bandwidth = bytes_per_iteration · iterations / communication_seconds, in GB/s, with the bytes
    over the busiest link (`busiest_bytes` of the strategy, from K = `gradient_bytes` times the
    share of it that is sent, in `costs`). The seconds are the trace's `moving_seconds`, or those by
    subtraction beyond noise. utilization = bandwidth / peak, as a fraction. Values are empty
    without communication time above 0, without a sweep and without K (`gradient_bytes` NaN).
    """
    table = timing.loc[timing["gpus"] > 1, [*CELL_KEYS, "status", "iterations"]]
    table = table.merge(costs[[*CELL_KEYS, "sent_share"]], how="left", on=CELL_KEYS)
    told = communication[(communication["estimate"] == TRACE) | ~communication["within_noise"]]
    told = preferred(told, MOVING).drop(columns="status")
    table = table.merge(told, how="left", on=CELL_KEYS)
    seconds = table["moving_seconds"].fillna(table["communication_seconds"])
    # The engine of a recipe's other cells where one was not measured.
    known = costs[costs["engine"].notna() & (costs["engine"] != "")]
    engines = known.groupby("recipe")["engine"].last()
    moved, peaks = [], []
    for row in schema.rows_of(table.fillna({"sent_share": 1.0})):
        busiest = STRATEGIES.find(row.strategy).busiest_bytes
        moved.append(busiest(row.gpus, gradient_bytes * row.sent_share))
        engine = engines.get(row.recipe, "")
        peaks.append(peak_gb_per_s(interconnect, engine, row.strategy, row.gpus))
    bytes_per_iteration = pd.Series(moved, table.index, float).round()
    per_second = bytes_per_iteration * table["iterations"] / seconds.where(seconds > 0)
    table = table.assign(
        communication_seconds=seconds,
        bytes_per_iteration=bytes_per_iteration,
        bandwidth_gb_per_s=per_second / GB,
        peak_gb_per_s=pd.Series(peaks, table.index, float),
    )
    table["utilization"] = table["bandwidth_gb_per_s"] / table["peak_gb_per_s"]
    return schema.arrange("bandwidth", table)
