"""Communication time of every multi-GPU cell by each estimate, and bandwidths."""

import math
from statistics import median, stdev
from typing import Any

import numpy as np
import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.core.records.run import RunRecord
from scaling.core.statistics import margin
from scaling.registry.engine import ENGINES
from scaling.registry.strategy import STRATEGIES
from scaling.tables import ratios, schema
from scaling.tables.timing import Run, by_cell, with_single_gpu

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
EXPOSED_SECONDS = "communication_seconds"
LOW, HIGH = f"{EXPOSED_SECONDS}_low", f"{EXPOSED_SECONDS}_high"
SECONDS = [EXPOSED_SECONDS, "moving_seconds", LOW, HIGH]


def readings(runs: list[Run]) -> pd.DataFrame:
    """Return what instruments read of one iteration, medians over all repeats: `SECONDS` by cell.

    Ends are the 95 % interval between runs, of one run the range of its repeats to either side, of
    a single reading half and double.
    """
    found = [
        {**cell, "estimate": estimate, **_medians(read)}
        for cell, seeds in by_cell([run for run in runs if run[0].gpus > 1])
        for estimate in INSTRUMENTS
        if (read := [own for record in seeds if record and (own := _of_run(record, estimate))])
    ]
    return pd.DataFrame(found, columns=[*CELL_KEYS, "estimate", *SECONDS])


def _of_run(record: RunRecord, estimate: str) -> tuple[list[float], float] | None:
    """Return the exposed seconds of an iteration in each repeat, and the seconds of all of it."""
    traced = [one for one in record["communication"]["readings"] if one["estimate"] == TRACE]
    timed = [rank for rank in record["in_memory"] if rank["seconds_without_exchange"]]
    ranks: list[Any] = [*traced] if estimate == TRACE else timed
    if not ranks or not all(rank["iterations"] for rank in ranks):
        return None

    def each(name: str) -> Any:
        return np.array([rank[name] for rank in ranks]) / ranks[0]["iterations"]

    if estimate == TRACE:
        return [np.median(each("exposed_seconds"))], np.median(each("communication_seconds"))
    added = each("seconds").max(axis=0) - each("seconds_without_exchange").max(axis=0)
    return list(added), math.nan


def _medians(read: list[tuple[list[float], float]]) -> dict[str, float]:
    repeats = [own for own, _ in read]
    whole = np.concatenate(repeats)
    exposed, moving = np.median(whole), np.median([each for _, each in read])
    if len(whole) == 1:
        ends = sorted([exposed / ratios.LONE_READING, exposed * ratios.LONE_READING])
    else:
        off = margin([stdev(map(median, repeats))], [len(read)]) if len(read) > 1 else math.nan
        off = np.ptp(whole) if math.isnan(off) else off
        ends = [exposed - off, exposed + off]
    return dict(zip(SECONDS, (exposed, moving, *ends), strict=True))


def communication(
    timing: pd.DataFrame, in_memory: pd.DataFrame, readings: pd.DataFrame
) -> pd.DataFrame:
    """Return the communication seconds per epoch of the multi-GPU cells of `timing`.

    `communication_seconds` is the exposed part, `moving_seconds` the time of all communication, by
    the trace alone; `within_noise` tells that the interval of the former contains 0. Subtraction,
    T(N,b) - T(1,b) / N without loading, is left out where the epoch in memory takes longer by more
    than is `NEGLIGIBLE`: the GPU worked while the host waited.
    """
    memory = timing.merge(in_memory, how="left", on=CELL_KEYS)["in_memory_epoch_seconds"]
    short = memory > (1 + NEGLIGIBLE) * timing[WITHOUT_LOADING]
    times = timing.assign(**{WITHOUT_LOADING: timing[WITHOUT_LOADING].mask(short)})
    several = times[times["gpus"] > 1]
    measured = several.merge(readings, on=CELL_KEYS)
    measured[SECONDS] = measured[SECONDS].mul(measured["iterations"], axis=0)
    table = pd.concat([_subtraction(with_single_gpu(several, times, "batch_size")), measured])
    noise = (table[LOW] <= 0) & (table[HIGH] >= 0)
    return schema.arrange("communication", table.assign(within_noise=noise))


def _subtraction(paired: pd.DataFrame) -> pd.DataFrame:
    """Return `paired`, cells with their baseline on one GPU, with its estimate and ends.

    T(1,b) / N = T(N,b) · speedup / N: those of the speedup, or of one run the extremes of times.
    """
    gpus, total = paired["gpus"], paired[WITHOUT_LOADING]
    exposed = total - paired[f"single_{WITHOUT_LOADING}"] / gpus
    table = paired.assign(estimate=BY_SUBTRACTION, communication_seconds=exposed)
    speedups = ratios.ratios(paired, "single_", "", WITHOUT_LOADING)
    one_run = paired[["runs", "single_runs"]].min(axis=1) < 2
    for end, own, other, speedup in ((LOW, "min", "max", "high"), (HIGH, "max", "min", "low")):
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
    """Return 2(N-1)/N, the factor from algbw to busbw (nccl-tests' PERFORMANCE.md)."""
    return 2 * (gpus - 1) / gpus


def interconnect(sweeps: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the all-reduce times, one row per message of each sweep: medians over the repeats.

    busbw = message bytes / seconds · 2(N-1)/N, in GB/s.
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


def _link(row: Any, interconnect: pd.DataFrame) -> tuple[float, float]:
    """Return the bytes of an iteration over a cell's busiest link, and that link's GB/s.

    The latter is 2(N-1)/N · sum of bytes / sum of seconds, of the swept messages of its engine's or
    strategy's kind; NaN without any, or if sums were wrong.
    """
    strategy = STRATEGIES.find(row.strategy)
    whole = interconnect.loc[interconnect["kind"] == "gradients", "message_bytes"].max()
    sent = strategy.busiest_bytes(row.gpus, whole * row.sent_share)
    swept = interconnect[interconnect["gpus"] == row.gpus]
    kinds = ENGINES.find(row.engine).sweep_kinds if row.engine in ENGINES.names() else {}
    own = swept[swept["kind"] == kinds.get(row.strategy)]
    rows = own if len(own) else swept[swept["kind"] == strategy.sweep_kind]
    if rows.empty or not rows["correct"].all():
        return sent, math.nan
    rate = rows["message_bytes"].sum() / rows["seconds"].sum() / GB
    return sent, ring_factor(row.gpus) * rate


def bandwidth(
    timing: pd.DataFrame,
    communication: pd.DataFrame,
    interconnect: pd.DataFrame,
    costs: pd.DataFrame,
) -> pd.DataFrame:
    """Return the bandwidths in GB/s, one row per multi-GPU cell of `timing`.

    bandwidth = bytes_per_iteration · iterations / communication_seconds: the trace's
    `moving_seconds`, or those by subtraction beyond noise. A cell that did not run has no peak.
    """
    table = timing.loc[timing["gpus"] > 1, [*CELL_KEYS, "status", "iterations"]]
    table = table.merge(costs[[*CELL_KEYS, "sent_share", "engine"]], how="left", on=CELL_KEYS)
    told = communication[(communication["estimate"] == TRACE) | ~communication["within_noise"]]
    told = preferred(told, MOVING).drop(columns="status")
    table = table.merge(told, how="left", on=CELL_KEYS)
    rows = schema.rows_of(table.fillna({"sent_share": 1.0}))
    links = pd.DataFrame([_link(row, interconnect) for row in rows], table.index, [0, 1], float)
    seconds = table["moving_seconds"].fillna(table["communication_seconds"])
    moved, peak = links[0].round(), links[1].where(table["engine"].notna())
    rate = moved * table["iterations"] / seconds.where(seconds > 0) / GB
    table = table.assign(communication_seconds=seconds, bytes_per_iteration=moved)
    table = table.assign(bandwidth_gb_per_s=rate, peak_gb_per_s=peak, utilization=rate / peak)
    return schema.arrange("bandwidth", table)
