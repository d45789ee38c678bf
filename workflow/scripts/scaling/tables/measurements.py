"""The instruments' measurements of each cell: device time, classes of kernels, costs."""

import math
from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
import pandas as pd

from scaling.core.records.run import KernelClass, RunRecord
from scaling.tables import schema
from scaling.tables.runs import Run, Seeds, by_cell, table_of_cells
from scaling.tables.timing import TIMED, epochs, joules

STEP = ["seconds", "busy_seconds", "compute_seconds", "kernels"]


def device_time(runs: list[Run]) -> pd.DataFrame:
    """Return busy and idle time of one step on in-memory batches, one row per cell.

    step = busy + gap: the host's seconds; the part in which the device runs a kernel, a copy or a
    fill; the rest, below 0 if the traced steps took longer than the untraced ones. Busy is compute
    plus exposed communication, which includes waiting for other devices. Values are medians over
    the GPUs of a run, then over the seeds. A cell without values has a `note` why.
    """
    return table_of_cells("device_time", runs, _device_time)


def _device_time(records: Seeds) -> dict[str, Any]:
    read = [pd.DataFrame(record["device_time"]) for record in records if record is not None]
    steps = [
        ranks.reindex(columns=STEP).div(ranks["iterations"], axis=0).median(skipna=False)
        for ranks in read
        if len(ranks) and ranks["iterations"].all()
    ]
    if not steps:
        notes = [note for ranks in read if "note" in ranks for note in ranks["note"].dropna()]
        return {"count": 0, "note": notes[0] if notes else "the device's time was not read"}
    table = pd.DataFrame(steps).rename(columns={"seconds": "step_seconds"})
    found, gaps = table.median(skipna=False), table["step_seconds"] - table["busy_seconds"]
    # The median gap is not the difference of the other two medians.
    found["gap_seconds"] = found["step_seconds"] - found["busy_seconds"]
    ends = {"gap_seconds_min": gaps.min(), "gap_seconds_max": gaps.max()}
    return {**found, **ends, "count": len(steps), "note": ""}


def step_classes(runs: list[Run]) -> pd.DataFrame:
    """Return what the kernels of each class do in one step, a row per class of a traced cell.

    These are their seconds, the bytes that they read and write as far as that is known, and the
    `images` of a step on one GPU: medians over the GPUs of all seeds. With the exposed part of
    communication and the class `idle`, without a kernel, they add up to the step. For the other
    columns see `utilization.of_classes`.
    """
    rows = []
    for cell, seeds in by_cell(runs):
        found = pd.DataFrame(row for record in seeds if record for row in _of_devices(record))
        if len(found):
            medians = found.groupby("kernel_class").median()
            order = [kind for kind in (*get_args(KernelClass), "idle") if kind in medians.index]
            rows += [cell | own for own in medians.loc[order].reset_index().to_dict("records")]
    return schema.arrange("step_classes", rows)


def _of_devices(record: RunRecord) -> Iterator[dict[str, Any]]:
    samples = sum(rank["samples"] or 0 for rank in record["in_memory"])
    images = {"images": samples / record["cell"]["gpus"]}
    for device in [one for one in record["device_time"] if "classes" in one]:
        idle = {"idle": {"seconds": max(0, device["seconds"] - device["busy_seconds"])}}
        for kind, own in (device["classes"] | idle).items():
            sums, steps = own | images, device["iterations"]
            yield {"kernel_class": kind} | {name: total / steps for name, total in sums.items()}


def costs(runs: list[Run]) -> pd.DataFrame:
    """Return what an image costs in each cell, and with which options, from the records.

    A value that is missing in a cell's records, or differs between its seeds, is empty.
    `power_capped_share` is the part of all measured epochs that the most limited GPU spent at its
    power limit, rough below a second. `drift` is the largest of the runs (`settling.drift`). Energy
    is of all GPUs, not of hosts. `peak_memory_bytes` is the highest of all ranks and seeds.
    `startup_seconds` of a run, `measured_seconds` of its epochs and `run_seconds` of its whole
    command are medians. `switches` are the options that were on; `sent_share` is the bytes sent for
    the gradients as a share of the gradients' own.
    """
    return table_of_cells("costs", runs, _cost)


def _cost(seeds: Seeds) -> dict[str, Any]:
    records = [record for record in seeds if record]
    flops = {record["model"]["flops_per_image"] for record in records} - {None}
    applied = [record["training"]["recipe_applied"] or {} for record in records]
    precisions = {options.get("precision") for options in applied} - {None}
    measured, total = epochs(records, "measured"), joules(records, "measured")
    capped = measured["power_capped_seconds"].sum(skipna=False)
    memory = [size for record in records for size in record["memory"]["peak_bytes"]]
    capacities = [record["memory"]["capacity_bytes"] for record in records]
    settlings = [record["settling"] for record in records if record["status"] in TIMED]
    drifts = [each["drift"] for each in settlings if each["drift"] is not None]
    shares = [record["communication"]["sent_share"] for record in records]
    switches = [{key for key, value in each.items() if value is True} for each in applied if each]
    clocked = [
        {
            "startup_seconds": record["startup"]["total"],
            "measured_seconds": epochs([record], "measured")["seconds"].sum(),
            "run_seconds": record["run_seconds"],
        }
        for record in records
        if record["status"] in TIMED and record["startup"] and record["run_seconds"]
    ]
    return {
        **pd.DataFrame(clocked).median(),
        "switches": ", ".join(sorted(set.intersection(*switches))) if switches else None,
        "engine": next((record["training"]["engine"] for record in records), ""),
        "sent_share": min(filter(None, shares), default=None),
        "flops_per_image": flops.pop() if len(flops) == 1 else math.nan,
        "precision": precisions.pop() if len(precisions) == 1 else "",
        "power_capped_share": np.minimum(1.0, capped / (measured["seconds"].sum() or math.nan)),
        "peak_memory_bytes": max(memory, default=None),
        "memory_capacity_bytes": max(map(round, filter(None, capacities)), default=None),
        "drift": max(drifts, key=abs, default=math.nan),
        "joules_per_image": total / (measured["samples"].sum() or math.nan),
        "settled": len(drifts) > 0 and all(each["settled"] for each in settlings),
    }
