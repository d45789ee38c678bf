"""Utilization of the measured peak rate by each cell, and where the rest of the time goes."""

import math
from typing import Any

import numpy as np
import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.tables import schema


def utilization(
    timing: pd.DataFrame,
    epoch_parts: pd.DataFrame,
    peaks: pd.DataFrame,
    costs: pd.DataFrame,
    device_time: pd.DataFrame,
) -> pd.DataFrame:
    """Return the utilization (MFU), one row per row of `timing`.

    utilization = images/s · flops_per_image / (N · peak), the model FLOP utilization of PaLM
    (Chowdhery et al. 2022, arXiv:2204.02311, section 4.1), with the measured `peaks` of the cell's
    precision instead of the data sheet's, as a fraction. images/s are from the median epoch. The
    peak is a sprint's (see `peak_state`); `sustained_utilization` uses the sustained peak, empty if
    not measured.

    The shares are parts of that epoch: `utilization` is the time its operations would take at the
    peak, `loading_share` the data wait and `communication_share` the communication of
    `epoch_parts`. The traced step of `device_time` divides the work: in `idle_share` no kernel ran,
    in `slower_share` kernels computed below the peak. `unknown_share` is the remainder, not below
    0: without a trace, all of it. For `power_capped_share` see `measurements.costs`. `note` says
    what is missing.
    """
    parts = ["data_wait_seconds", "communication_seconds", "communication_estimate", "work_seconds"]
    steps = ["step_seconds", "compute_seconds", "gap_seconds"]
    table = timing.merge(costs, how="left", on=CELL_KEYS)
    table = table.merge(epoch_parts[[*CELL_KEYS, *parts]], how="left", on=CELL_KEYS)
    table = table.merge(device_time[[*CELL_KEYS, *steps]], how="left", on=CELL_KEYS)
    ends = {"": "", "_min": "_max", "_max": "_min", "_without_loading": "_without_loading"}
    for end, other in ends.items():
        table[f"images_per_second{end}"] = table["samples"] / table[f"epoch_seconds{other}"]
    per_gpu = table["flops_per_image"] / table["gpus"]
    table["flops_per_second_per_gpu"] = table["images_per_second"] * per_gpu
    for name, state in (("peak", "sprint"), ("sustained", "sustained")):
        best = peaks[peaks["state"] == state].groupby("precision")["value"].max()
        table[f"{name}_flops_per_second"] = table["precision"].map(best).astype(float)
    per_second = table["flops_per_second_per_gpu"]
    table["utilization"] = per_second / table["peak_flops_per_second"]
    table["sustained_utilization"] = per_second / table["sustained_flops_per_second"]
    table["peak_state"] = table["peak_flops_per_second"].notna().map({True: "sprint", False: ""})
    without = table["images_per_second_without_loading"] * per_gpu
    table["utilization_without_loading"] = without / table["peak_flops_per_second"]
    table["loading_share"] = table["data_wait_seconds"] / table["epoch_seconds"]
    share = table["communication_seconds"] / table["epoch_seconds"]
    table["communication_share"] = share.where(table["gpus"] > 1)
    of_a_step = table["work_seconds"] / table["epoch_seconds"] / table["step_seconds"]
    table["idle_share"] = table["gap_seconds"].clip(lower=0) * of_a_step
    computing = table["compute_seconds"] * of_a_step
    table["slower_share"] = (computing - table["utilization"]).clip(lower=0)
    parts = ["loading_share", "communication_share", "idle_share"]
    known = table[parts].clip(lower=0).sum(axis=1)
    known += np.maximum(computing.fillna(0), table["utilization"].fillna(0))
    table["unknown_share"] = (1 - known).clip(lower=0).where(table["epoch_seconds"].notna())
    table["note"] = [_note(row) for row in table.itertuples()]
    return schema.arrange("utilization", table)


def _note(row: Any) -> str:
    if math.isnan(row.epoch_seconds):
        return f"no time (status {row.status})"
    notes = [row.cost_note] if row.cost_note else []
    if row.precision and math.isnan(row.peak_flops_per_second):
        notes.append(f"no matrix product was measured in {row.precision}")
    if row.utilization > 1:
        notes.append("utilization above 100 %")
    return "; ".join(notes)
