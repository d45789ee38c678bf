"""The instruments' measurements: of each cell on the device, and the machine's limits."""

import math
from collections.abc import Iterable, Iterator
from statistics import median
from typing import Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.core.records.run import KernelClass, RunRecord
from scaling.core.statistics import margin
from scaling.tables import schema
from scaling.tables.schema import StudyTables
from scaling.tables.timing import (
    TIMED,
    Run,
    Seeds,
    by_cell,
    compiled,
    epochs,
    joules,
    per_cell,
    spread,
)

ALONE = "seconds_without_exchange"
GB = 1e9
"""Bytes of one GB (decimal, as in nccl-tests)."""
TRACE = "profiler"
INSTRUMENTS = ["without_communication", TRACE]
"""Estimates of communication: timed steps in memory with and without exchange, and the trace."""
LOW, HIGH = "communication_seconds_low", "communication_seconds_high"
SECONDS = ["communication_seconds", "moving_seconds", LOW, HIGH]
SLOW = 0.05
"""How much slower a rank may be than the others: GPUs of a kind differ by 1 or 2 %."""
STEP = ["seconds", "busy_seconds", "compute_seconds", "kernels"]


@per_cell
def in_memory(seeds: Seeds) -> dict[str, Any]:
    """Return the seconds of an epoch of batches in memory: the slowest rank's, median repeat."""
    found = [pd.Series(own.max(axis=0)) for own in _repeats(seeds, "seconds")]
    if not found:
        return {"runs": 0, "count": 0}
    seconds, column = pd.concat(found, keys=range(len(found))), "in_memory_epoch_seconds"
    whole = {column: seconds.median(), "runs": len(found), "count": len(seconds)}
    return whole | spread(column, seconds)


def _repeats(seeds: Seeds, name: str) -> list[NDArray[np.float64]]:
    """Return the seconds of an epoch [rank, repeat] of each record whose ranks measured `name`."""
    found = []
    for record in filter(None, seeds):
        ranks: list[Any] = [*record["in_memory"]]
        whole = epochs([record], "measured")
        if not ranks or whole.empty or not all(rank["iterations"] and rank[name] for rank in ranks):
            continue
        if all(rank["samples"] for rank in ranks):
            scale = whole["samples"].iloc[0] / sum(rank["samples"] for rank in ranks)
        else:
            scale = whole["iterations"].iloc[0] / ranks[0]["iterations"]
        found.append(np.array([rank[name] for rank in ranks]) * scale)
    return found


def slow_ranks(runs: list[Run]) -> pd.DataFrame:
    """Return as findings the ranks that are slower than all others at steps without exchange."""
    found = []
    for cell, seeds in by_cell(runs):
        times = _repeats(seeds, ALONE)
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
    """Return busy and idle seconds of one step in memory: medians over GPUs, then over seeds.

    step = busy + gap, below 0 if the traced steps took longer than the timed ones; busy is compute
    plus exposed communication.
    """
    read = [pd.DataFrame(record["device_time"]) for record in seeds if record]
    steps = [
        ranks.reindex(columns=STEP).div(ranks["iterations"], axis=0).median(skipna=False)
        for ranks in read
        if len(ranks) and ranks["iterations"].all()
    ]
    if not steps:
        notes = [note for ranks in read if "note" in ranks for note in ranks["note"].dropna()]
        return {"count": 0, "note": next(iter(notes), "the device's time was not read")}
    table = pd.DataFrame(steps).rename(columns={"seconds": "step_seconds"})
    found, gaps = table.median(skipna=False), table["step_seconds"] - table["busy_seconds"]
    # The median gap is not the difference of the other two medians.
    gap = found["step_seconds"] - found["busy_seconds"]
    ends = {"gap_seconds": gap, "gap_seconds_min": gaps.min(), "gap_seconds_max": gaps.max()}
    return {**found, **ends, "count": len(steps), "note": ""}


def step_classes(tables: StudyTables, runs: list[Run]) -> pd.DataFrame:
    """Return what the kernels of each class do in one step, a row per class of a traced cell.

    With exposed communication and the class `idle` the seconds add up to the step. Products
    `reached` a share of their cell's peak, other classes of the rate of copies in the
    device's memory, over the seconds in which they run, empty where these are not recorded.
    `least_seconds` are those at this limit, together the floor of a step.
    """
    rows = []
    for cell, seeds in by_cell(runs):
        found = pd.DataFrame(row for record in seeds if record for row in _of_devices(record))
        if len(found):
            medians = found.groupby("kernel_class").median()
            order = [kind for kind in (*get_args(KernelClass), "idle") if kind in medians.index]
            rows += [cell | own for own in medians.loc[order].reset_index().to_dict("records")]
    own = tables.utilization[[*CELL_KEYS, "flops_per_image", "peak_flops_per_second"]]
    table = schema.frame("step_classes", rows).merge(own, how="left", on=CELL_KEYS)
    products, seconds = table["kernel_class"] == "products", table["seconds"]
    copied = tables.peaks.loc[tables.peaks["quantity"] == "device_copy", "value"].max()
    known = table["bytes"].where(table["bytes"] > 0)
    work = known.mask(products, table["images"] * table["flops_per_image"])
    # No class is before products: they run in all of their seconds.
    running = table["running_seconds"].mask(products, seconds)
    limit = table["peak_flops_per_second"].where(products, copied)
    least = (work / limit).clip(upper=seconds).fillna(0)
    table = table.assign(rate=work / running, reached=work / running / limit, least_seconds=least)
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
    """Return what an image costs in each cell, and with which options, if all seeds agree.

    `power_capped_share` is the part of all measured epochs that the most limited GPU spent at its
    power limit. Energy is of the boards of all GPUs, idle power not subtracted; its ends are the
    95 % interval between runs. Start-up is of runs that compiled nothing anew, and of the others
    `startup_cold_seconds`. `switches` are the options that were on.
    """
    records = [record for record in seeds if record]
    timed = [record for record in records if record["status"] in TIMED]
    applied = [own for record in records if (own := record["training"]["recipe_applied"])]
    switches = [{key for key, value in each.items() if value is True} for each in applied]
    capped = pd.DataFrame(map(_power_capped, records), columns=["capped", "seconds"], dtype=float)
    capped = capped.sum(skipna=False)
    memory = [size for record in records for size in record["memory"]["peak_bytes"]]
    capacities = [size for record in records if (size := record["memory"]["capacity_bytes"])]
    drifts = [drift for record in timed if (drift := record["settling"]["drift"]) is not None]
    started = [record for record in timed if record["startup"]]
    starts = [record["startup"] for record in started]
    total = pd.Series([own["total"] for own in starts], dtype=float)
    cold = np.array([*map(compiled, started)], bool)
    searches = [own["cudnn_search"] for own in starts if "cudnn_search" in own]
    energy = pd.Series([joules_per_image(record) for record in records], dtype=float)
    off = margin([energy.std()], [len(energy)])
    shares = [share for record in records if (share := record["communication"]["sent_share"])]
    return {
        "startup_seconds": total[~cold].median(),
        "startup_cold_seconds": total[cold].median(),
        "cudnn_search_seconds": median(searches) if searches else math.nan,
        "switches": ", ".join(sorted(set.intersection(*switches))) if switches else None,
        "engine": records[0]["training"]["engine"] if records else None,
        "sent_share": min(shares, default=None),
        "flops_per_image": _same(record["model"]["flops_per_image"] for record in records),
        "precision": _same(options.get("precision") for options in applied) or "",
        "power_capped_share": np.minimum(1.0, capped["capped"] / (capped["seconds"] or math.nan)),
        "peak_memory_bytes": max(memory, default=None),
        "memory_capacity_bytes": max(map(round, capacities), default=None),
        "drift": max(drifts, key=abs, default=None),
        "joules_per_image": energy.mean(skipna=False),
        "joules_per_image_low": energy.mean(skipna=False) - off,
        "joules_per_image_high": energy.mean(skipna=False) + off,
        "settled": bool(drifts) and all(record["settling"]["settled"] for record in timed),
    }


def _power_capped(record: RunRecord) -> tuple[Any, ...]:
    """Return the seconds at the power limit of the most limited rank, and all measured ones."""
    rows = [own for own in record.get("energy") or () if own["role"] == "measured"]
    read = pd.DataFrame(rows) if rows else epochs([record], "measured")
    times = read[["power_capped_seconds", "seconds"]].astype(float)
    return tuple(times.max(skipna=False) if rows else times.sum(skipna=False))


def joules_per_image(record: RunRecord) -> float:
    """Return the energy of a run's GPUs for an image of its measured epochs; NaN if unknown."""
    samples = epochs([record], "measured")["samples"].sum()
    return joules(record, "measured") / (samples or math.nan)


def _same(values: Iterable[Any]) -> Any | None:
    """Return the value that all have in common, but those that are None."""
    known = set(values) - {None}
    return known.pop() if len(known) == 1 else None


def readings(runs: list[Run]) -> pd.DataFrame:
    """Return what instruments read of one iteration, means over runs: `SECONDS` by cell.

    Ends are the 95 % interval between runs; one run has none.
    """
    rows = [
        {**cell, "estimate": estimate, "run": number, "exposed": exposed, "moving": moving}
        for cell, seeds in by_cell([run for run in runs if run[0].gpus > 1])
        for number, record in enumerate(seeds)
        for estimate, exposed, moving in (_of_run(record) if record else ())
    ]
    keys = [*CELL_KEYS, "estimate"]
    read = pd.DataFrame(rows, columns=[*keys, "run", "exposed", "moving"]).groupby(keys, sort=False)
    found = [{**dict(zip(keys, key, strict=True)), **_means(own)} for key, own in read]
    return pd.DataFrame(found, columns=[*keys, *SECONDS])


def _of_run(record: RunRecord) -> Iterator[tuple[str, float, float]]:
    """Yield the exposed and all communication seconds of an iteration, by instrument.

    By timed steps they are the slowest rank's delay, of medians over its blocks. By the trace they
    are of the rank that waits least for others.
    """

    def each(ranks: Any, name: str) -> Any:
        return np.array([rank[name] for rank in ranks]) / ranks[0]["iterations"]

    timed = [rank for rank in record["in_memory"] if rank[ALONE]]
    if timed and all(rank["iterations"] for rank in timed):
        both = (np.median(each(timed, name).max(axis=0)) for name in ("seconds", ALONE))
        yield INSTRUMENTS[0], next(both) - next(both), math.nan
    traced = [one for one in record["communication"]["readings"] if one["estimate"] == TRACE]
    if traced and all(rank["iterations"] for rank in traced):
        exposed, moving = (each(traced, f"{kind}_seconds") for kind in ("exposed", "communication"))
        yield TRACE, exposed.min(), moving.min()


def _means(read: pd.DataFrame) -> dict[str, float]:
    exposed, moving = read[["exposed", "moving"]].mean()
    off = margin([read["exposed"].std()], [len(read)])
    return dict(zip(SECONDS, (exposed, moving, exposed - off, exposed + off), strict=True))


def interconnect(sweeps: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the times of messages, one row per message of each sweep: medians over the repeats.

    algbw = message bytes / seconds, and busbw = algbw · 2(N-1)/N for an all-reduce, else algbw, in
    GB/s (nccl-tests' PERFORMANCE.md).
    """
    rows = []
    for sweep in sweeps:
        for row in sweep["rows"]:
            own = row["seconds"]
            ends = {"seconds_min": min(own), "seconds_max": max(own), "count": len(own)}
            skew = median(row.get("start_skew_seconds", [math.nan]))
            ends |= {"seconds_p99": np.percentile(own, 99), "start_skew_seconds": skew}
            ends["machine"] = _machine(sweep)
            rows.append({**sweep, **row, "seconds": median(own), **ends})
    order = ["gpus", "backend", "kind", "message_bytes"]
    table = schema.frame("interconnect", rows).sort_values(order, kind="stable", ignore_index=True)
    algbw = table["message_bytes"] / table["seconds"] / GB
    gpus, one_way = table["gpus"], table["kind"].isin(["broadcast", "reduce"])
    busbw = algbw.where(one_way, 2 * (gpus - 1) / gpus * algbw)
    return table.assign(algbw_gb_per_s=algbw, busbw_gb_per_s=busbw)


def peaks(documents: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the median repeat's rates, one row per row of the documents (`instruments.peaks`).

    They are of 2·n³ FLOP for a product of n×n matrices, or of the bytes of a copy, twice within a
    memory. `peak` marks a machine's largest of each quantity, precision and `state`.
    """
    rows = []
    for row, machine in [(row, _machine(one)) for one in documents for row in one["rows"]]:
        seconds, product = row["seconds"], row["quantity"] == "matrix_product"
        work = 2 * row["matrix_size"] ** 3 if product else row["copy_bytes"]
        work *= 2 if row["quantity"] == "device_copy" else 1
        ends = {"value_min": work / max(seconds), "value_max": work / min(seconds)}
        value = {"value": work / median(seconds), "unit": "FLOP/s" if product else "B/s"}
        rows.append({**row, **value, **ends, "count": len(seconds), "machine": machine})
    table = schema.frame("peaks", rows)
    kinds = ["machine", "quantity", "precision", "state"]
    best = table.groupby(kinds, dropna=False)["value"].transform("max")
    return table.assign(peak=table["value"] == best)


def findings(checks: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the findings of machine checks, one row per finding."""
    rows = [found | {"machine": _machine(one)} for one in checks for found in one["findings"]]
    return schema.frame("machine", rows).drop_duplicates(ignore_index=True)


def _machine(document: dict[str, Any]) -> Any:
    return document.get("environment", {}).get("machine")
