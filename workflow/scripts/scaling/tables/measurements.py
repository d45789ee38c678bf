"""Make tables of kernels, costs, links, peak rates and machine checks."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from statistics import median
from typing import Any, get_args

import numpy as np
import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.core.records.run import KernelClass, RunRecord
from scaling.tables import schema
from scaling.tables.schema import StudyTables
from scaling.tables.timing import (
    TIMED,
    Run,
    break_even,
    by_cell,
    compiled,
    epochs,
    in_memory,
    origin,
)

ALONE = "seconds_without_exchange"
GB = 1e9
"""Bytes of one GB (decimal, as in nccl-tests)."""
SLOW = 0.05
"""A rank is slow if its steps take longer than those of the other ranks by more than this fraction.
GPUs of one type differ by 0.01 or 0.02."""
STEP = ["seconds", "busy_seconds", "compute_seconds"]


def slow_ranks(runs: list[Run]) -> pd.DataFrame:
    """Return a warning for each configuration with a rank that computes slower than the others.

    The times are of steps without gradient exchange, or of steps that a user's command prints.
    """
    findings = []
    for cell, records, _ in by_cell(runs):
        blocks = [in_memory(record, ALONE) for record in records]
        blocks += [np.c_[record["training"].get("step_seconds", [])] for record in records]
        times = [ranks for ranks in blocks if ranks is not None and len(ranks) == cell["gpus"]]
        if not times or cell["gpus"] == 1:
            continue
        seconds = np.concatenate([ranks / np.median(ranks) for ranks in times], axis=1)
        rank = int(np.median(seconds, axis=1).argmax())
        others = np.delete(seconds, rank, axis=0)
        slower = np.median(seconds[rank]) / np.median(others) - 1
        if slower > SLOW and seconds[rank].min() > others.max():
            message = f"rank {rank} computes {fmt.percent(slower)} slower than the others"
            findings.append(cell | {"message": message})
    return pd.DataFrame(findings)


def step_classes(tables: StudyTables, runs: list[Run]) -> pd.DataFrame:
    """Return seconds and rate of kernels in a step, by configuration and class of kernels.

    The `seconds` of all classes add up to the step: time with kernels of two classes counts for
    one. `rate` is work / all seconds in which the class runs. Work is FLOPs of matrix products, or
    bytes of memory traffic of another class, if known. The peak rate is that of matrix products, or
    of copies on a GPU. `reached` is `rate` / peak rate, and `least_seconds` is work / peak rate.
    """
    keys, names = [*CELL_KEYS, "kernel_class"], ["seconds", "running_seconds", "images", "bytes"]
    types: dict[str, Any] = dict.fromkeys(names, float)
    types["kernel_class"] = pd.CategoricalDtype([*get_args(KernelClass), "idle"])
    rows = [asdict(cell) | row for cell, record in runs if record for row in _of_devices(record)]
    steps = pd.DataFrame(rows, columns=[*keys, *names]).astype(types)
    medians = steps.groupby(keys, observed=True, as_index=False).median()
    table = schema.frame("step_classes", medians)
    limits = tables.utilization[[*CELL_KEYS, "peak_flops_per_second", "peak_bytes_per_second"]]
    for values in (limits, tables.costs[[*CELL_KEYS, "flops_per_image"]]):
        table = table.merge(values, how="left", on=CELL_KEYS)
    products, seconds = table["kernel_class"] == "products", table["seconds"]
    known = table["bytes"].where(table["bytes"] > 0)
    work = known.mask(products, table["images"] * table["flops_per_image"])
    # No class is before products: they run in all of their seconds.
    running = table["running_seconds"].mask(products, seconds)
    limit = table["peak_flops_per_second"].where(products, table["peak_bytes_per_second"])
    least = (work / limit).clip(upper=seconds).fillna(0)
    table = table.assign(rate=work / running, reached=work / running / limit, least_seconds=least)
    return schema.arrange("step_classes", table)


def _least_busy(record: RunRecord) -> list[dict[str, Any]]:
    """Return a list with the traced steps of the least busy GPU; [] if a GPU has no trace.

    A GPU is also busy while its messages wait for other ranks. The least busy GPU waits least.
    """
    read: Any = record["device_time"]
    if not all("busy_seconds" in one and one["iterations"] for one in read):
        return []
    return sorted(read, key=lambda one: one["busy_seconds"] / one["iterations"])[:1]


def _of_devices(record: RunRecord) -> Iterator[dict[str, Any]]:
    samples = sum(rank["samples"] or 0 for rank in record["in_memory"])
    images = {"images": samples / record["cell"]["gpus"]}
    # Traces have no sizes of lists of over 30 tensors. Updates move weights twice, gradients once.
    least = 12 * (record["model"]["parameters"] or 0)
    for device in [one for one in _least_busy(record) if "classes" in one]:
        idle = {"idle": {"seconds": max(0, device["seconds"] - device["busy_seconds"])}}
        for kind, sums_of_kind in (device["classes"] | idle).items():
            sums, steps = sums_of_kind | images, device["iterations"]
            if kind == "optimizer" and sums["bytes"] < least * steps:
                sums["bytes"] = 0
            yield {"kernel_class": kind} | {name: total / steps for name, total in sums.items()}


def costs(runs: list[Run]) -> pd.DataFrame:
    """Return FLOPs per image, peak memory, start-up and step times of each configuration.

    `drift` is the largest change of epoch times in a run (a fraction). `power_capped_share` is the
    fraction of measured time at the power limit (maximum over GPUs). `startup_seconds` leaves out
    runs that compiled code. `break_even_…` compare with one GPU at the same global batch.
    `switches` are the options that all runs enable. `message_bytes` are the sizes of a step's
    gradient messages, if equal in all runs. `message_waits` is True if traced messages include
    waits for ranks. `rank_step_seconds` is the median over ranks of step times that a command
    prints. Columns `step_…` are medians, over runs, of traced steps of the least busy GPU.
    """
    cells = [(cell, records, _started(records)) for cell, records, _ in by_cell(runs)]
    one = {(cell["recipe"], cell["batch_size"]): own for cell, _, own in cells if cell["gpus"] == 1}
    rows = []
    for cell, records, started in cells:
        alone = one.get((cell["recipe"], cell["gpus"] * cell["batch_size"]))
        lengths = {} if alone is None or cell["gpus"] == 1 else break_even(alone, started)
        rows.append(cell | _costs(records, started) | lengths)
    return schema.arrange("costs", rows)


def _started(records: list[RunRecord]) -> pd.DataFrame:
    """Return start-up and epoch times of each run with a status in `TIMED`, for `break_even`."""
    rows = [
        {"compiled": compiled(record)}
        | {"epoch_seconds": epochs([record], "measured")["seconds"].median()}
        | origin(record["environment"], ("machine", "code"))
        | (record["startup"] or {})
        for record in records
        if record["status"] in TIMED
    ]
    columns = ["machine", "code", "compiled", "epoch_seconds", "total", "cudnn_search"]
    return pd.DataFrame(rows, columns=columns).rename(columns={"total": "other_seconds"})


def _costs(records: list[RunRecord], started: pd.DataFrame) -> dict[str, Any]:
    timed = [record for record in records if record["status"] in TIMED]
    applied = [own for record in records if (own := record["training"]["recipe_applied"])]
    switches = [{key for key, value in each.items() if value is True} for each in applied]
    capped, measured = np.array([(0, 0), *map(_power_capped, records)], float).sum(axis=0)
    memory = [size for record in records for size in record["memory"]["peak_bytes"]]
    capacities = [size for record in records if (size := record["memory"]["capacity_bytes"])]
    drifts = [drift for record in timed if (drift := record["settling"]["drift"]) is not None]
    startup, cold = started["other_seconds"].astype(float), started["compiled"].eq(True)
    shares = [share for record in records if (share := record["communication"]["sent_share"])]
    ranks = pd.DataFrame([record["training"].get("step_seconds", []) for record in timed]).median()
    readings = [one for record in records for one in record["communication"]["readings"]]
    traced_messages = [
        one for one in readings if one["estimate"] == "profiler" and "note" not in one
    ]
    devices = [one for record in records for one in _least_busy(record)]
    steps = pd.DataFrame(devices, columns=[*STEP, "iterations"])
    return {
        **steps[STEP].div(steps["iterations"], axis=0).median(skipna=False).add_prefix("step_"),
        "rank_step_seconds": ranks.median(),
        "rank_step_seconds_min": ranks.min(),
        "rank_step_seconds_max": ranks.max(),
        "startup_seconds": startup[~cold].median(),
        "startup_cold_seconds": startup[cold].median(),
        "cudnn_search_seconds": started["cudnn_search"].astype(float).median(),
        "switches": ", ".join(sorted(set.intersection(*switches))) if switches else None,
        "engine": records[0]["training"]["engine"] if records else None,
        "sent_share": min(shares, default=None),
        "message_bytes": _same(map(_message_bytes, records)),
        "message_waits": any("start_skew_seconds" not in one for one in traced_messages),
        "flops_per_image": _same(record["model"]["flops_per_image"] for record in records),
        "precision": _same(options.get("precision") for options in applied) or "",
        "power_capped_share": np.minimum(1.0, capped / (measured or np.nan)),
        "peak_memory_bytes": max(memory, default=None),
        "memory_capacity_bytes": max(map(round, capacities), default=None),
        "drift": max(drifts, key=abs, default=None),
        "settled": bool(drifts) and all(record["settling"]["settled"] for record in timed),
    }


def _power_capped(record: RunRecord) -> tuple[Any, ...]:
    """Return (seconds at the power limit, all seconds) of measured epochs, as maxima over ranks."""
    rows = [row for row in record.get("energy") or () if row["role"] == "measured"]
    read = pd.DataFrame(rows) if rows else epochs([record], "measured")
    times = read[["power_capped_seconds", "seconds"]].astype(float)
    return tuple(times.max(skipna=False) if rows else times.sum(skipna=False))


def _message_bytes(record: RunRecord) -> str | None:
    """Return the sizes of a step's gradient messages in bytes, as text (`1024 512`), or None."""
    sizes, share = record["communication"]["bucket_bytes"], record["communication"]["sent_share"]
    # Buckets of float32 gradients; others are recorded as sent.
    whole = sum(sizes) >= (record["model"]["gradient_bytes"] or 0)
    return " ".join(str(round(size * (share or 1) if whole else size)) for size in sizes) or None


def _same(values: Iterable[Any]) -> Any | None:
    """Return the only value in `values` that is not None; None without one or with several."""
    known = set(values) - {None}
    return known.pop() if len(known) == 1 else None


def interconnect(sweeps: list[dict[str, Any]]) -> pd.DataFrame:
    """Return a row per collective and message size of each sweep: times and bandwidths.

    `seconds` is the median over repeats. algbw = message bytes / `seconds`, in GB/s. On N GPUs,
    busbw = algbw · 2(N-1)/N for all-reduces, and algbw for broadcasts and reduces (nccl-tests).
    """
    rows = [sweep["environment"] | sweep | row for sweep in sweeps for row in sweep["rows"]]
    order = ["gpus", "backend", "kind", "message_bytes"]
    table = schema.frame("interconnect", rows).sort_values(order, kind="stable", ignore_index=True)
    repeats = table["seconds"]
    table = table.assign(
        seconds=repeats.map(np.median),
        seconds_min=repeats.map(min),
        seconds_max=repeats.map(max),
        seconds_p99=[np.percentile(seconds, 99) for seconds in repeats],
        count=repeats.map(len),
        start_skew_seconds=table["start_skew_seconds"].map(np.median),
    )
    algbw = table["message_bytes"] / table["seconds"] / GB
    gpus, one_way = table["gpus"], table["kind"].isin(["broadcast", "reduce"])
    busbw = algbw.where(one_way, 2 * (gpus - 1) / gpus * algbw)
    return table.assign(algbw_gb_per_s=algbw, busbw_gb_per_s=busbw)


def peaks(documents: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the rate of each matrix product and copy in the peak records: work / median seconds.

    The work is 2·n³ FLOP for n×n matrices. For a copy, it is the number of copied bytes, or twice
    this number on one device (read and write). `peak` marks the best rate of a machine, quantity,
    precision and `state` (`sprint`: after a rest; `sustained`: under load).
    """
    rows = []
    for row in [one["environment"] | row for one in documents for row in one["rows"]]:
        seconds, product = row["seconds"], row["quantity"] == "matrix_product"
        work = 2 * row["matrix_size"] ** 3 if product else row["copy_bytes"]
        work *= 2 if row["quantity"] == "device_copy" else 1
        ends = {"value_min": work / max(seconds), "value_max": work / min(seconds)}
        value = {"value": work / median(seconds), "unit": "FLOP/s" if product else "B/s"}
        rows.append(row | value | ends | {"count": len(seconds)})
    table = schema.frame("peaks", rows)
    kinds = ["machine", "quantity", "precision", "state"]
    best = table.groupby(kinds, dropna=False)["value"].transform("max")
    return table.assign(peak=table["value"] == best)


def machine(checks: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the problems that machine checks found."""
    rows = [one["environment"] | finding for one in checks for finding in one["findings"]]
    return schema.frame("machine", rows).drop_duplicates(ignore_index=True)
