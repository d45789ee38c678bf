"""Tables on times, communication, the machine and the audit: questions 1 to 3, and below."""

import math
from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.cells import fastest, learned, of_study
from scaling.report.quantities import view
from scaling.tables.schema import StudyTables, by_configuration

CELL = "configuration gpus batch_size"
BY_GPUS = "configuration gpus"
BY_BATCH: Any = {"across": "batch_size", "heading": "b = {}".format}

view(
    "Q1",
    "Epoch time and waiting for data",
    "gpus batch_size",
    "epoch_seconds work_seconds loading_share",
    across="recipe",
    epoch_time=lambda study, cells: cells[cells["gpus"] == cells["gpus"].min()],
)
view(
    "Q2",
    "Table 1: seconds of an epoch T(N, b) on N GPUs, b images each; speedup T(1, b) / T(N, b)",
    BY_GPUS,
    "epoch_seconds speedup",
    speedup=lambda study, cells: cells,
    **BY_BATCH,
)


@view(
    "Q2",
    "How many GPUs? An epoch at the fastest b that learns on one",
    CELL,
    "epoch_seconds speedup efficiency gpu_seconds epoch_joules money_per_epoch startup_seconds"
    " same_global_seconds",
)
def how_many_gpus(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells on each N of the fastest batch size that learned on one GPU, or is fastest.

    The last row of a configuration is a `guess`: twice the most GPUs at their efficiency and cost,
    unless their speedup is within noise.
    """
    cells = of_study(study, shared=True)
    joules = cells["joules_per_image"] * cells["samples"]
    timed = cells.assign(good=learned(cells), epoch_joules=joules, guess=False)
    timed = timed[(timed["status"] == "ok") & timed["speedup"].notna()]
    found = [timed.iloc[:0]]
    for _, _, own in by_configuration(timed):
        alone = own[own["gpus"] == 1]
        best: Any = fastest(alone[alone["good"]]) or fastest(alone)
        same = own[own["batch_size"] == best.batch_size].sort_values("gpus") if best else alone
        if len(same) < 2 or same["speedup"].iloc[-1] <= 1:
            continue
        split = own[own["gpus"] * own["batch_size"] == best.batch_size].set_index("gpus")
        same = same.assign(same_global_seconds=same["gpus"].map(split["epoch_seconds"]))
        measured = ["startup_seconds", "same_global_seconds", "speedup_low", "epoch_seconds_min"]
        double = same.tail(1).assign(**dict.fromkeys(measured, math.nan), guess=True)
        double[["gpus", "speedup"]] *= 2
        double["epoch_seconds"] /= 2
        found += [same] if bool(same["within_spread"].iloc[-1]) else [same, double]
    return pd.concat(found)


view(
    "Q3.1",
    "Table 2: seconds of an epoch, without waiting for data: communication that is exposed, and "
    "the rest",
    BY_GPUS,
    "compute_seconds communication_seconds",
    compute_and_communication=lambda study, cells: study.epoch_parts[
        study.epoch_parts["gpus"] > 1
    ].dropna(subset="compute_seconds"),
    **BY_BATCH,
)
view(
    "Q3.1",
    "Where an epoch goes",
    CELL,
    "flops_per_second_per_gpu utilization slower_share idle_share unknown_share communication_share"
    " loading_share power_capped_share joules_per_image money_per_epoch",
    epoch_parts=lambda study, cells: cells[cells["status"] == "ok"],
)
view(
    "Q3.2",
    "Table 3: GB/s while gradients travel: bytes of an epoch over the seconds of its messages",
    BY_GPUS,
    "bandwidth_gb_per_s link_utilization",
    bandwidth_by_batch=lambda study, cells: study.bandwidth.dropna(subset="bandwidth_gb_per_s"),
    **BY_BATCH,
)
view(
    "Q3.2",
    "What the bandwidths are made of",
    CELL,
    "bytes_per_iteration iterations messages_seconds estimate peak_gb_per_s",
    bandwidth=lambda study, cells: study.bandwidth.dropna(subset="bandwidth_gb_per_s"),
)
view(
    "Q3.2",
    "All-reduce by message size",
    "message_bytes message_kind",
    "message_seconds busbw_gb_per_s",
    across="gpus",
    heading=fmt.gpus,
    interconnect=lambda study, cells: study.interconnect,
)


@view("limits", "What the machine reaches", "quantity precision size", "rate")
def peaks(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    found = study.peaks
    found = found[(found["quantity"] != "gpu_to_gpu_copy") | found["peak"]]
    sizes = found["matrix_size"].map("{:g}".format).where(found["matrix_size"] > 0)
    sizes = sizes.fillna(found["copy_bytes"].map(fmt.data))
    return found.assign(size=sizes + found["state"].map({"sustained": ", sustained"}).fillna(""))


view("limits", "Warnings", CELL, "message found expected", findings=lambda study, _: study.audit)
