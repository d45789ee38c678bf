"""The parts of an epoch, by each estimate of communication; bandwidths; the use of the peak."""

import math
from typing import Any

import numpy as np
import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.registry.engine import COMMAND
from scaling.registry.strategy import STRATEGIES
from scaling.tables import ratios, schema
from scaling.tables.measurements import GB, HIGH, INSTRUMENTS, LOW, SECONDS, TRACE
from scaling.tables.schema import StudyTables
from scaling.tables.timing import with_single_gpu

BY_SUBTRACTION = "subtraction_without_loading"
EXPOSED = [*INSTRUMENTS, BY_SUBTRACTION]
"""Estimates of exposed communication by preference: timed steps in memory, with and without
exchange; the trace; subtraction, which mistakes data waits that the GPU worked through for it."""
MOVING = [TRACE, BY_SUBTRACTION]
"""Estimates of all communication, for bandwidths: steps without exchange miss what overlaps."""
WITHOUT_LOADING = "epoch_seconds_without_loading"
NEGLIGIBLE = 0.02
"""A data wait below this share of an epoch is negligible."""


def communication(tables: StudyTables, readings: pd.DataFrame) -> pd.DataFrame:
    """Return the communication seconds per epoch of the multi-GPU cells.

    `communication_seconds` is the exposed part, `moving_seconds` the time of all communication, by
    the trace alone; `within_noise` tells that the interval of the former contains 0. Subtraction,
    T(N,b) - T(1,b) / N without loading, is left out where the epoch in memory takes longer by more
    than is `NEGLIGIBLE`: the GPU worked while the host waited.
    """
    timing = tables.timing
    memory = timing.merge(tables.in_memory, how="left", on=CELL_KEYS)["in_memory_epoch_seconds"]
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


def _link(row: Any, interconnect: pd.DataFrame) -> tuple[float, float]:
    """Return the bytes of an iteration over a cell's busiest link, and that link's GB/s.

    The latter is the bus bandwidth of all swept messages of its strategy's kinds one after another;
    NaN without any, or if sums were wrong.
    """
    strategy = STRATEGIES.find(row.strategy)
    whole = interconnect.loc[interconnect["kind"] == "gradients", "message_bytes"].max()
    sent = strategy.busiest_bytes(row.gpus, whole * row.sent_share)
    swept = interconnect[interconnect["gpus"] == row.gpus]
    rows = swept[swept["kind"].isin(strategy.sweep_kinds)]
    if rows.empty or not rows["correct"].all():
        return sent, math.nan
    seconds = rows["seconds"]
    return sent, (rows["busbw_gb_per_s"] * seconds).sum() / seconds.sum()


def bandwidth(tables: StudyTables) -> pd.DataFrame:
    """Return the bandwidths in GB/s, one row per multi-GPU cell.

    bandwidth = bytes_per_iteration · iterations / communication_seconds: the trace's
    `moving_seconds`, or those by subtraction beyond noise. A cell that did not run has no peak.
    """
    table = tables.timing.loc[tables.timing["gpus"] > 1, [*CELL_KEYS, "status", "iterations"]]
    costs, told = tables.costs[[*CELL_KEYS, "sent_share", "engine"]], tables.communication
    told = preferred(told[(told["estimate"] == TRACE) | ~told["within_noise"]], MOVING)
    for own in (costs, told.drop(columns="status")):
        table = table.merge(own, how="left", on=CELL_KEYS)
    rows = schema.rows_of(table.fillna({"sent_share": 1.0}))
    links = [_link(row, tables.interconnect) for row in rows]
    sent = pd.DataFrame(links, table.index, ["bytes", "rate"], float)
    seconds = table["moving_seconds"].fillna(table["communication_seconds"])
    moved, peak = sent["bytes"].round(), sent["rate"].where(table["engine"].notna())
    rate = moved * table["iterations"] / seconds.where(seconds > 0) / GB
    table = table.assign(communication_seconds=seconds, bytes_per_iteration=moved)
    table = table.assign(bandwidth_gb_per_s=rate, peak_gb_per_s=peak, utilization=rate / peak)
    return schema.arrange("bandwidth", table)


def epoch_parts(tables: StudyTables) -> pd.DataFrame:
    """Return the parts of each epoch: compute + exposed communication + data wait = epoch.

    `work_seconds` is the epoch without data waits: the epoch in memory, or the epoch itself if that
    was measured at most once and data waits are `NEGLIGIBLE`. A cell that has neither has no work;
    its data wait is the host's, an upper bound, as the GPU works meanwhile.
    """
    first = preferred(tables.communication).rename(columns={"estimate": "communication_estimate"})
    first = first[[*CELL_KEYS, *first.filter(like="communication_")]]
    memory = tables.in_memory.rename(columns={"count": "memory_count", "runs": "memory_runs"})
    table = tables.timing.merge(memory, how="left", on=CELL_KEYS)
    table = table.merge(first, how="left", on=CELL_KEYS)
    table.loc[table["gpus"] == 1, "communication_seconds"] = 0.0
    # A user's own command does not tell how long it waits.
    waits = table["loader_seconds"].fillna(math.inf) > NEGLIGIBLE * table["epoch_seconds"]
    chosen = waits | (table["memory_count"] > 1)
    for end in ("", "_min", "_max", "_run_std"):
        measured = table[f"in_memory_epoch_seconds{end}"]
        table[f"work_seconds{end}"] = table[f"epoch_seconds{end}"].mask(chosen, measured)
    for number in ("count", "runs"):
        table[number] = table[number].mask(chosen, table[f"memory_{number}"])
    wait = (table["epoch_seconds"] - table["work_seconds"]).clip(lower=0)
    table["data_wait_seconds"] = wait.fillna(table["loader_seconds"])
    table["compute_seconds"] = table["epoch_seconds"] - wait - table["communication_seconds"]
    return schema.arrange("epoch_parts", table)


def utilization(tables: StudyTables) -> pd.DataFrame:
    """Return the utilization (MFU) of each cell and the shares of its epoch.

    utilization = images/s · flops_per_image / (N · peak), a fraction (Chowdhery et al. 2022,
    arXiv:2204.02311, section 4.1), with the peak that a cool GPU reached at the cell's precision.
    In `slower_share` kernels computed below it, by traced steps. What no part explains is
    `idle_share`, without a trace `unknown_share`.
    """
    parts = ["data_wait_seconds", "communication_seconds", "communication_estimate", "work_seconds"]
    steps = ["step_seconds", "busy_seconds", "compute_seconds"]
    table = tables.timing.merge(tables.costs, how="left", on=CELL_KEYS)
    for own, names in ((tables.epoch_parts, parts), (tables.device_time, steps)):
        table = table.merge(own[[*CELL_KEYS, *names]], how="left", on=CELL_KEYS)
    epoch = table["epoch_seconds"]
    rate = table["samples"] / epoch
    best = tables.peaks[tables.peaks["state"] == "sprint"].groupby("precision")["value"].max()
    peak = table["precision"].map(best).astype(float)
    per_gpu = rate * table["flops_per_image"] / table["gpus"]
    used = per_gpu / peak
    # Of a user's own command the driver counts whole epochs, and only when the GPU is busy.
    work = table["work_seconds"].where(table["engine"] != COMMAND.name, epoch)
    of_a_step = work / epoch / table["step_seconds"]
    computing = table["compute_seconds"] * of_a_step
    working = table["compute_seconds"].fillna(table["busy_seconds"]) * of_a_step
    waits, share = table["data_wait_seconds"] / epoch, table["communication_seconds"] / epoch
    others = waits.clip(lower=0).fillna(0) + share.clip(lower=0).fillna(0)
    idle = (1 - working - others).clip(lower=0)
    known = others + idle.fillna(0) + np.maximum(computing.fillna(0), used.fillna(0))
    table = table.assign(
        images_per_second=rate,
        flops_per_second_per_gpu=per_gpu,
        peak_flops_per_second=peak,
        utilization=used,
        slower_share=(computing - used).clip(lower=0),
        idle_share=idle,
        communication_share=share.where(table["gpus"] > 1),
        loading_share=waits,
        unknown_share=(1 - known).clip(lower=0).where(epoch.notna()),
    )
    return schema.arrange("utilization", table)


def audit(tables: StudyTables, slow: pd.DataFrame) -> pd.DataFrame:
    """Return the findings on a study: `slow` ranks, and epochs above the measured peak."""
    used = tables.utilization
    fast = used.assign(found=used["utilization"], expected=1)[used["utilization"] > 1]
    fast["message"] = "the epoch took less time than its operations take at the measured peak"
    rows = pd.concat([slow, fast]).assign(severity="warning")
    return schema.arrange("audit", rows).astype({"found": float, "expected": float})
