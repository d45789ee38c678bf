"""The parts of an epoch, the use of the measured peak rate, and the audit."""

import math

import numpy as np
import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.registry.strategy import OWN
from scaling.tables import schema
from scaling.tables.communication import NEGLIGIBLE, preferred


def epoch_parts(
    timing: pd.DataFrame, in_memory: pd.DataFrame, communication: pd.DataFrame
) -> pd.DataFrame:
    """Return the parts of each epoch: compute + exposed communication + data wait = epoch.

    `work_seconds` is the epoch without data waits: the epoch in memory, or the epoch itself if that
    was measured at most once and data waits are `NEGLIGIBLE`. A cell that has neither has no work;
    its data wait is the host's, an upper bound, as the GPU works meanwhile.
    """
    first = preferred(communication).rename(columns={"estimate": "communication_estimate"})
    first = first[[*CELL_KEYS, *first.filter(like="communication_")]]
    memory = in_memory.rename(columns={"count": "memory_count", "runs": "memory_runs"})
    table = timing.merge(memory, how="left", on=CELL_KEYS).merge(first, how="left", on=CELL_KEYS)
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


def utilization(
    timing: pd.DataFrame,
    epoch_parts: pd.DataFrame,
    peaks: pd.DataFrame,
    costs: pd.DataFrame,
    device_time: pd.DataFrame,
) -> pd.DataFrame:
    """Return the utilization (MFU) and the shares of the epoch, one row per row of `timing`.

    utilization = images/s · flops_per_image / (N · peak), a fraction (Chowdhery et al. 2022,
    arXiv:2204.02311, section 4.1), with the peak that a cool GPU reached at the cell's precision.
    In `slower_share` kernels computed below it, by traced steps. What no part explains is
    `idle_share`, without a trace `unknown_share`.
    """
    parts = ["data_wait_seconds", "communication_seconds", "communication_estimate", "work_seconds"]
    steps = ["step_seconds", "busy_seconds", "compute_seconds"]
    table = timing
    for own in (costs, epoch_parts[[*CELL_KEYS, *parts]], device_time[[*CELL_KEYS, *steps]]):
        table = table.merge(own, how="left", on=CELL_KEYS)
    epoch = table["epoch_seconds"]
    rate = table["samples"] / epoch
    best = peaks[peaks["state"] == "sprint"].groupby("precision")["value"].max()
    peak = table["precision"].map(best).astype(float)
    per_gpu = rate * table["flops_per_image"] / table["gpus"]
    used = per_gpu / peak
    # Of a user's own command the driver counts whole epochs, and only when the GPU is busy.
    work = table["work_seconds"].where(table["strategy"] != OWN.name, epoch)
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


def audit(slow: pd.DataFrame, used: pd.DataFrame) -> pd.DataFrame:
    """Return the findings on a study: `slow` ranks, and epochs above the measured peak."""
    message = "the epoch took less time than its operations take at the measured peak"
    fast = used[used["utilization"] > 1].assign(message=message, expected=1)
    rows = pd.concat([slow, fast.assign(found=fast["utilization"])]).assign(severity="warning")
    return schema.arrange("audit", rows).astype({"found": float, "expected": float})
