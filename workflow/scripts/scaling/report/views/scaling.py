"""Tables on times, communication and the machine: questions 1 to 3, peaks and start-up."""

import math
from typing import Any

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.core.numbers import gpus, words
from scaling.report.frames import fastest, learned, shown_once
from scaling.report.quantities import view
from scaling.tables.schema import StudyTables, by_configuration

CELL = "configuration gpus batch_size"
BY_GPUS = "configuration gpus"
BY_BATCH: Any = {"across": "batch_size", "heading": "b = {}".format}


def _several(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["gpus"] > 1]


@view(
    "Q1",
    "Epoch time and waiting for data",
    "gpus batch_size",
    "epoch_seconds work_seconds waiting",
    across="recipe",
)
def epoch_time(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    table = shown_once(cells[cells["gpus"] == cells["gpus"].min()])
    work = study.epoch_parts[[*CELL_KEYS, "work_seconds"]]
    return table.merge(work, how="left", on=CELL_KEYS)


@view("Q1", "One step on the device", CELL, "step_seconds step_compute_seconds gap_seconds kernels")
def device_time(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    return study.device_time.merge(shown_once(cells)[CELL_KEYS]).dropna(subset="step_seconds")


@view(
    "Q2",
    "Table 1: seconds of an epoch T(N, b), and speedup T(1, b) / T(N, b)",
    BY_GPUS,
    "time judged_speedup",
    note=lambda row: row.message or (row.note if "no ratio" in row.note else ""),
    **BY_BATCH,
)
def speedup(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    return shown_once(cells)


@view(
    "Q2",
    "At the same global batch (strong scaling): T(1, N·b) / T(N, b)",
    BY_GPUS,
    "fixed_global_batch_speedup fixed_global_batch_efficiency",
    **BY_BATCH,
)
def same_global_batch(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    return _several(study.speedup).dropna(subset="fixed_global_batch_speedup")


@view(
    "Q2",
    "How many GPUs? An epoch at the fastest b that learns on one",
    CELL,
    "foreseen_seconds speedup efficiency gpu_seconds epoch_joules money_per_epoch"
    " startup_of_a_run_seconds same_global_seconds",
)
def how_many_gpus(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of a batch size on each number N of GPUs: the fastest on one that learned.

    Where no accuracy is known it is the fastest on one. They have `epoch_joules`,
    `startup_seconds` of a run and `same_global_seconds` T(N, b / N). The last row of a
    configuration is for twice the most GPUs, at their efficiency and cost, and `extrapolated`; none
    where their speedup is within noise. Configurations that are no faster than on one GPU are left
    out.
    """
    timed = cells.assign(
        good=learned(cells) if "reference" in cells else True,
        epoch_joules=cells["joules_per_image"] * cells["samples"],
        extrapolated=False,
    )
    timed = timed[(timed["status"] == "ok") & timed["speedup"].notna()]
    timed = timed.merge(study.costs[[*CELL_KEYS, "startup_seconds"]], how="left", on=CELL_KEYS)
    found = [timed.iloc[:0]]
    for _, _, own in by_configuration(timed):
        alone = own[own["gpus"] == 1]
        best: Any = fastest(alone[alone["good"]]) or fastest(alone)
        same = own[own["batch_size"] == best.batch_size].sort_values("gpus") if best else alone
        if len(same) < 2 or same["speedup"].iloc[-1] <= 1:
            continue
        split = own[own["gpus"] * own["batch_size"] == best.batch_size].set_index("gpus")
        same = same.assign(same_global_seconds=same["gpus"].map(split["epoch_seconds"]))
        unknown = dict.fromkeys(("startup_seconds", "same_global_seconds"), math.nan)
        double = same.tail(1).assign(**unknown, extrapolated=True)
        double[["gpus", "speedup"]] *= 2
        double["epoch_seconds"] /= 2
        found += [same] if bool(same["within_spread"].iloc[-1]) else [same, double]
    return pd.concat(found)


@view(
    "Q2",
    "What each strategy costs and saves",
    "recipe gpus batch_size",
    "epoch_seconds peak_memory_bytes bytes_per_iteration",
    across="strategy",
    note=lambda row: row.message,
)
def strategies(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the multi-GPU cells with the bytes of a step, if there are three strategies."""
    sent = study.bandwidth[[*CELL_KEYS, "bytes_per_iteration"]].drop_duplicates(CELL_KEYS)
    found = cells.merge(sent, how="inner", on=CELL_KEYS)
    return found if found["strategy"].nunique() > 2 else found.iloc[:0]


@view(
    "Q3.1",
    "Table 2: seconds of an epoch, without waiting for data: communication that is exposed, and "
    "the rest",
    BY_GPUS,
    "compute_seconds communication_seconds",
    **BY_BATCH,
)
def compute_and_communication(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    return _several(study.epoch_parts).dropna(subset="compute_seconds")


@view(
    "Q3.1",
    "Where an epoch goes",
    CELL,
    "flops_per_second_per_gpu utilization slower_share idle_share unknown_share communication_share"
    " loading_share power_capped_share joules_per_image money_an_epoch",
)
def epoch_parts(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    return shown_once(cells[cells["status"] == "ok"])


@view(
    "Q3.1",
    "Communication by every estimate, seconds",
    CELL,
    "estimated_communication_seconds",
    across="estimate",
    heading=words,
)
def communication(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    return study.communication.dropna(subset="communication_seconds")


@view(
    "Q3.2",
    "Table 3: GB/s while gradients travel: bytes of an epoch over the seconds of its messages",
    BY_GPUS,
    "bandwidth_gb_per_s link_utilization",
    **BY_BATCH,
)
def bandwidth_by_batch(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    return study.bandwidth.dropna(subset="bandwidth_gb_per_s")


@view(
    "Q3.2",
    "What the bandwidths are made of",
    CELL,
    "step_bytes iterations messages_seconds estimate peak_gb_per_s",
)
def bandwidth(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    return study.bandwidth.dropna(subset="bandwidth_gb_per_s")


@view(
    "Q3.2",
    "All-reduce by message size",
    "message_bytes message_kind",
    "message_seconds busbw_gb_per_s",
    across="gpus",
    heading=gpus,
)
def interconnect(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    return study.interconnect


@view("limits", "What the machine reaches", "quantity precision", "state size rate")
def peaks(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    between = study.peaks["quantity"] == "gpu_to_gpu_copy"
    return study.peaks[~between | study.peaks["peak"]]
