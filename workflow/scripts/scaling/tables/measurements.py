"""The instruments' measurements: of each cell on the device, and the machine's limits."""

import math
from collections.abc import Iterator
from statistics import median
from typing import Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.core.records.run import KernelClass, RunRecord
from scaling.tables import schema
from scaling.tables.timing import TIMED, Run, Seeds, by_cell, epochs, joules, per_cell, spread

ALONE = "seconds_without_exchange"
SLOW = 0.05
"""How much slower a rank may be than the others: GPUs of a kind differ by 1 or 2 %."""
STEP = ["seconds", "busy_seconds", "compute_seconds", "kernels"]


@per_cell
def in_memory(seeds: Seeds) -> dict[str, Any]:
    """Return the seconds of an epoch on in-memory batches, one row per cell.

    It is the slowest rank's time, scaled to the epoch's images: the median over repeats and seeds.
    """
    times = [_repeats(record) for record in seeds if record]
    found = [pd.Series(own["seconds"].max(axis=0)) for own in times if "seconds" in own]
    if not found:
        return {"runs": 0, "count": 0}
    seconds = pd.concat(found, keys=range(len(found)))
    column = "in_memory_epoch_seconds"
    whole = {column: seconds.median(), **spread(column, seconds)}
    return whole | {"runs": len(found), "count": len(seconds)}


def _repeats(record: RunRecord) -> dict[str, NDArray[np.float64]]:
    """Return the seconds of an epoch [rank, repeat], for each quantity that all ranks measured."""
    ranks, whole = record["in_memory"], epochs([record], "measured")
    if not ranks or whole.empty or not all(rank["iterations"] for rank in ranks):
        return {}
    if all(rank["samples"] for rank in ranks):
        scale = whole["samples"].iloc[0] / sum(rank["samples"] for rank in ranks)
    else:
        scale = whole["iterations"].iloc[0] / ranks[0]["iterations"]
    return {
        name: np.array([rank[name] for rank in ranks]) * scale
        for name in ("seconds", ALONE)
        if all(rank[name] for rank in ranks)
    }


def slow_ranks(runs: list[Run]) -> pd.DataFrame:
    """Return as findings the ranks that are slower than all others at steps without exchange."""
    found = []
    for cell, seeds in by_cell(runs):
        own = [_repeats(record) for record in seeds if record]
        times = [each[ALONE] for each in own if ALONE in each]
        if len({len(each) for each in times}) != 1 or len(times[0]) < 2:
            continue
        seconds = np.concatenate(times, axis=1)
        rank = int(np.median(seconds, axis=1).argmax())
        others = np.delete(seconds, rank, axis=0)
        slower = np.median(seconds[rank]) / np.median(others) - 1
        if slower > SLOW and seconds[rank].min() > others.max():
            message = f"rank {rank} computes {fmt.percent(slower)} slower than the others"
            found.append(cell | {"message": message, "found": slower, "expected": SLOW})
    return pd.DataFrame(found)


@per_cell
def device_time(seeds: Seeds) -> dict[str, Any]:
    """Return busy and idle time of one step on in-memory batches, one row per cell.

    step = busy + gap: the host's seconds; the part in which the device runs a kernel or a copy; the
    rest, below 0 if the traced steps took longer than the untraced ones. Busy is compute plus
    exposed communication. Values are medians over the GPUs of a run, then over the seeds. A cell
    without values has a `note` why.
    """
    read = [pd.DataFrame(record["device_time"]) for record in seeds if record]
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


def step_classes(runs: list[Run], used: pd.DataFrame, peaks: pd.DataFrame) -> pd.DataFrame:
    """Return what the kernels of each class do in one step, a row per class of a traced cell.

    Their seconds and bytes, and the `images` of a step on one GPU, are medians over the GPUs of all
    seeds. With the exposed part of communication and the class `idle` they add up to the step. The
    limit of products is the peak of the table `used`, in FLOP/s; that of others is the rate of
    copies within the device's memory, in B/s. `rate` is per second in which the class runs, empty
    where that is not recorded; `reached` is above 1 where data come from a cache.
    `least_seconds` is the time of a class at its limit: together the floor of a step on this
    device, without idle time and communication, which may be hidden.
    """
    rows = []
    for cell, seeds in by_cell(runs):
        found = pd.DataFrame(row for record in seeds if record for row in _of_devices(record))
        if len(found):
            medians = found.groupby("kernel_class").median()
            order = [kind for kind in (*get_args(KernelClass), "idle") if kind in medians.index]
            rows += [cell | own for own in medians.loc[order].reset_index().to_dict("records")]
    own = used[[*CELL_KEYS, "flops_per_image", "peak_flops_per_second"]]
    table = schema.frame("step_classes", rows).merge(own, how="left", on=CELL_KEYS)
    products, seconds = table["kernel_class"] == "products", table["seconds"]
    copied = peaks.loc[peaks["quantity"] == "device_copy", "value"].max()
    known = table["bytes"].where(table["bytes"] > 0)
    work = known.mask(products, table["images"] * table["flops_per_image"])
    # No class is before products: they run in all of their seconds.
    running = table["running_seconds"].mask(products, seconds)
    limit = table["peak_flops_per_second"].where(products, copied)
    table["rate"], table["reached"] = work / running, work / running / limit
    table["unit"] = products.map({True: "FLOP/s", False: "B/s"}).where(work.notna(), "")
    table["limit"] = limit.where(work.notna())
    table["least_seconds"] = (work / limit).clip(upper=seconds).fillna(0)
    return schema.arrange("step_classes", table)


def _of_devices(record: RunRecord) -> Iterator[dict[str, Any]]:
    samples = sum(rank["samples"] or 0 for rank in record["in_memory"])
    images = {"images": samples / record["cell"]["gpus"]}
    for device in [one for one in record["device_time"] if "classes" in one]:
        idle = {"idle": {"seconds": max(0, device["seconds"] - device["busy_seconds"])}}
        for kind, own in (device["classes"] | idle).items():
            sums, steps = own | images, device["iterations"]
            yield {"kernel_class": kind} | {name: total / steps for name, total in sums.items()}


@per_cell
def costs(seeds: Seeds) -> dict[str, Any]:
    """Return what an image costs in each cell, and with which options, from the records.

    A value that is missing, or differs between the seeds, is empty. `power_capped_share` is the
    part of all measured epochs that the most limited GPU spent at its power limit. `drift` is the
    largest of the runs (`settling.drift`). Energy is of all GPUs, not of hosts. Seconds of a run
    and its parts are medians. `switches` are the options that were on; `sent_share` is the bytes
    sent for the gradients as a share of the gradients' own.
    """
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


def peaks(document: dict[str, Any]) -> pd.DataFrame:
    """Return the measured rates, one row per row of the document (see `instruments.peaks`).

    The value is the median repeat's rate, in FLOP/s or B/s. The work is 2·n³ FLOP for a product of
    n×n matrices, and the bytes of a copy, twice within a memory (read and write). `peak` marks the
    largest value of each quantity, precision and `state`: after a rest (`sprint`) or after seconds
    of work (`sustained`).
    """
    rows = []
    for row in document["rows"]:
        seconds, product = row["seconds"], row["quantity"] == "matrix_product"
        if product:
            work = 2 * row["matrix_size"] ** 3
        else:
            work = row["copy_bytes"] * (2 if row["quantity"] == "device_copy" else 1)
        figures = {
            "unit": "FLOP/s" if product else "B/s",
            "value": work / median(seconds),
            "value_min": work / max(seconds),
            "value_max": work / min(seconds),
            "count": len(seconds),
        }
        rows.append({**row, **figures})
    table = schema.frame("peaks", rows)
    kinds = ["quantity", "precision", "state"]
    best = table.groupby(kinds, dropna=False)["value"].transform("max")
    return table.assign(peak=table["value"] == best)


def topology(document: dict[str, Any]) -> str:
    """Return the output of `nvidia-smi topo -m` without styling; "" if it was not recorded."""
    printed = (document["environment"].get("topology") or "").strip()
    # Records lack leading blanks; without the tab the header is shifted by a column.
    return f"\t{printed}\n" if printed else ""
