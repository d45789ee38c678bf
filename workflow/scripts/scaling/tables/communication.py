"""Communication time of every multi-GPU cell by each estimate, and bandwidths."""

import math
from collections.abc import Iterator
from statistics import median, stdev
from typing import Any

import numpy as np
import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.core.statistics import margin
from scaling.registry.engine import ENGINES
from scaling.registry.strategy import STRATEGIES
from scaling.tables import ratios, schema
from scaling.tables.timing import Run, Seeds, by_cell, with_single_gpu

GB = 1e9
"""Bytes of one GB (decimal, as in nccl-tests)."""
TRACE, BY_SUBTRACTION = "profiler", "subtraction_without_loading"
INSTRUMENTS = ["without_communication", TRACE]
EXPOSED = [*INSTRUMENTS, BY_SUBTRACTION]
"""Estimates of exposed communication by preference: timed steps in memory, with and without
exchange; the trace; subtraction, which mistakes data waits that the GPU worked through for it."""
MOVING = [TRACE, BY_SUBTRACTION]
"""Estimates of all communication, for bandwidths: steps without exchange miss what overlaps."""
WITHOUT_LOADING = "epoch_seconds_without_loading"
NEGLIGIBLE = 0.02
"""A data wait below this share of an epoch is negligible."""
SECONDS = ["communication_seconds", "moving_seconds", "low", "high"]


def readings(runs: list[Run]) -> pd.DataFrame:
    """Return what instruments read of one iteration: `SECONDS` for each multi-GPU cell.

    Medians over the repeats of all runs; `low` and `high` are the 95 % interval between runs, of
    one run the range of its repeats to either side, of a single reading half and double.
    """
    found = [
        {**cell, "estimate": estimate, **_medians(each)}
        for cell, seeds in by_cell([run for run in runs if run[0].gpus > 1])
        for estimate in INSTRUMENTS
        if (each := list(_of_runs(seeds, estimate)))
    ]
    return pd.DataFrame(found, columns=[*CELL_KEYS, "estimate", *SECONDS])


def _of_runs(seeds: Seeds, estimate: str) -> Iterator[pd.DataFrame]:
    """Yield the seconds per iteration of each run that has them, a row per repeat."""
    for record in filter(None, seeds):
        traced = [one for one in record["communication"]["readings"] if one["estimate"] == TRACE]
        timed = [rank for rank in record["in_memory"] if rank["seconds_without_exchange"]]
        ranks = pd.DataFrame(traced if estimate == TRACE else timed)
        if ranks.empty or not ranks["iterations"].all():
            continue
        if estimate == TRACE:
            medians = ranks[["exposed_seconds", "communication_seconds"]].median()
            seconds = medians.to_frame().T.set_axis(SECONDS[:2], axis=1)
        else:
            keys = ("seconds", "seconds_without_exchange")
            with_it, without = (np.max(ranks[key].tolist(), axis=0) for key in keys)
            seconds = pd.DataFrame({SECONDS[0]: with_it - without, SECONDS[1]: np.nan})
        yield seconds / ranks["iterations"].iloc[0]


def _medians(each: list[pd.DataFrame]) -> dict[str, float]:
    whole, column = pd.concat(each), SECONDS[0]
    exposed, moving = whole.median(skipna=False)
    between = [run[column].median() for run in each]
    off = margin([stdev(between)], [len(each)]) if len(each) > 1 else np.nan
    ends = sorted(exposed * factor for factor in (1 / ratios.LONE_READING, ratios.LONE_READING))
    if len(whole) > 1:
        off = np.ptp(whole[column]) if np.isnan(off) else off
        ends = [exposed - off, exposed + off]
    return dict(zip(SECONDS, (exposed, moving, *ends), strict=True))


def communication(
    timing: pd.DataFrame, in_memory: pd.DataFrame, readings: pd.DataFrame
) -> pd.DataFrame:
    """Return the communication seconds per epoch of the multi-GPU cells of `timing`.

    `communication_seconds` is the exposed part, `moving_seconds` the time of all communication, by
    the trace alone; `within_noise` that the noise of the former contains 0. By subtraction it is
    T(N,b) - T(1,b) / N = T(N,b) · (1 - speedup / N) without loading, whose ends follow from those
    of the speedup, or from the extremes of times of one run. It is empty where the epoch in memory
    takes longer, by more than is `NEGLIGIBLE`: the GPU worked while the host waited.
    """
    memory = timing.merge(in_memory, how="left", on=CELL_KEYS)["in_memory_epoch_seconds"]
    short = memory > (1 + NEGLIGIBLE) * timing[WITHOUT_LOADING]
    times = timing.assign(**{WITHOUT_LOADING: timing[WITHOUT_LOADING].mask(short)})
    several = times[times["gpus"] > 1]
    paired = with_single_gpu(several, times, "batch_size")
    measured = several.merge(readings, on=CELL_KEYS)
    measured[SECONDS] = measured[SECONDS].mul(measured["iterations"], axis=0)
    table = pd.concat([_subtraction(paired), measured])
    ends = {f"{SECONDS[0]}_{end}": table[end] for end in SECONDS[2:]}
    table = table.assign(**ends, within_noise=(table["low"] <= 0) & (table["high"] >= 0))
    return schema.arrange("communication", table)


def _subtraction(paired: pd.DataFrame) -> pd.DataFrame:
    """Return `paired`, cells with their baseline on one GPU, with its estimate."""
    gpus, total = paired["gpus"], paired[WITHOUT_LOADING]
    exposed = total - paired[f"single_{WITHOUT_LOADING}"] / gpus
    table = paired.assign(estimate=BY_SUBTRACTION, communication_seconds=exposed)
    speedups = ratios.ratios(paired, "single_", "", WITHOUT_LOADING)
    one_run = paired[["runs", "single_runs"]].min(axis=1) < 2
    for end, own, other, speedup in (("low", "min", "max", "high"), ("high", "max", "min", "low")):
        alone = paired[f"single_{WITHOUT_LOADING}_{other}"] / gpus
        seconds = total * (1 - speedups[speedup] / gpus)
        seconds = seconds.mask(one_run, paired[f"{WITHOUT_LOADING}_{own}"] - alone)
        table[end] = seconds.where(exposed.notna() & speedups[speedup].notna())
    return table


def preferred(table: pd.DataFrame, estimates: list[str] = EXPOSED) -> pd.DataFrame:
    """Return each cell's row of the first of these estimates that has seconds for it."""
    known = table[table["communication_seconds"].notna() & table["estimate"].isin(estimates)]
    order = known["estimate"].map(estimates.index).sort_values(kind="stable").index
    return known.loc[order].drop_duplicates(CELL_KEYS).sort_index()


def ring_factor(gpus: Any) -> Any:
    """Return the bytes that each GPU sends per byte of a ring all-reduce: 2(N-1)/N.

    Patarasuk & Yuan 2009; also the factor from algbw to busbw in nccl-tests' PERFORMANCE.md.
    """
    return 2 * (gpus - 1) / gpus


def interconnect(sweeps: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the all-reduce times, one row per message of each sweep.

    `seconds` is the median over the repeats; busbw = message bytes / seconds · 2(N-1)/N, in GB/s.
    """
    rows = []
    for sweep in sweeps:
        for row in sweep["rows"]:
            own = row["seconds"]
            ends = {"seconds_min": min(own), "seconds_max": max(own), "count": len(own)}
            rows.append({**sweep, **row, "seconds": median(own), **ends})
    order = ["gpus", "backend", "kind", "message_bytes"]
    table = schema.frame("interconnect", rows).sort_values(order, kind="stable", ignore_index=True)
    busbw = ring_factor(table["gpus"]) * table["message_bytes"] / table["seconds"] / GB
    return table.assign(busbw_gb_per_s=busbw)


def _peak(interconnect: pd.DataFrame, engine: str, strategy: str, gpus: int) -> float:
    """Return the measured bus bandwidth, in GB/s, of the engine's or strategy's kind of messages.

    2(N-1)/N · sum of bytes / sum of seconds; NaN without a sweep, or if its sums were wrong.
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
    costs: pd.DataFrame,
) -> pd.DataFrame:
    """Return the table of bandwidths, one row per multi-GPU cell of `timing`.

    bandwidth = bytes_per_iteration · iterations / communication_seconds, in GB/s, with the bytes
    over the busiest link, from K, the sweep's bytes of all gradients, times the share of it that is
    sent. The seconds are the trace's `moving_seconds`, or those by subtraction beyond noise.
    utilization = bandwidth / peak, a fraction.
    """
    whole = interconnect.loc[interconnect["kind"] == "gradients", "message_bytes"].max()
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
        moved.append(busiest(row.gpus, whole * row.sent_share))
        peaks.append(_peak(interconnect, engines.get(row.recipe, ""), row.strategy, row.gpus))
    table["communication_seconds"] = seconds
    table["bytes_per_iteration"] = pd.Series(moved, table.index, float).round()
    sent = table["bytes_per_iteration"] * table["iterations"]
    table["bandwidth_gb_per_s"] = sent / seconds.where(seconds > 0) / GB
    table["peak_gb_per_s"] = pd.Series(peaks, table.index, float)
    table["utilization"] = table["bandwidth_gb_per_s"] / table["peak_gb_per_s"]
    return schema.arrange("bandwidth", table)
