"""What cannot be in the record of a run, whatever its types."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any, get_args

from scaling.core.records.fields import Role, of_images
from scaling.core.settling import settling

PARTS = ("communication_seconds", "exposed_seconds", "overlapped_seconds")
"""Of a reading: all communication, and the parts that add up to it."""
MOST_WATTS = 2500
"""No GPU has as much power: NVIDIA's data sheets say 700 W of an H100, 1400 W of a B300."""
SLACK = 0.5
"""Seconds by which counters of a driver may run behind."""


def contradictions(record: Any, needed: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """Yield what is impossible in a run, each in a few words; its sections have `needed` keys."""
    status, rows = record["status"], record["epochs"]
    lacking = [
        f"{part}.{key}" for part, keys in needed.items() for key in keys - record[part].keys()
    ]
    if lacking:
        yield f"{min(lacking)}: Field required"
        return
    complete, processes = status in ("ok", "diverged"), len({row["rank"] for row in rows})
    if (status != "ok" and not record["message"]) or (status == "infeasible" and rows):
        yield f"status {status} without its message, or with epochs"
    places = [(row["epoch"], row["rank"]) for row in rows]
    last = min(max(places, default=(0, 0))[0], len(rows))
    wanted = sorted(set(places))
    if complete:
        wanted = [(epoch, rank) for epoch in range(1, last + 1) for rank in range(processes)]
    roles = [get_args(Role).index(row["role"]) for row in rows]
    if places != wanted or roles != sorted(roles):
        yield "epochs or their ranks are missing, twice, or out of order"
    yield from _epochs(record, last, processes)
    if complete:
        yield from _parts(record, processes)


def _epochs(record: Any, last: int, processes: int) -> Iterator[str]:
    """Yield which epochs are impossible."""
    cell, status = record["cell"], record["status"]
    complete = status in ("ok", "diverged")
    images, samples = record["dataset"]["train_images"], dict.fromkeys(range(1, last + 1), 0)
    for row in record["epochs"]:
        share = cell["batch_size"] * cell["gpus"] // processes
        whole = row["role"] != "instrumented"
        if (row["loader_seconds"] or 0) > row["seconds"]:
            yield f"epoch {row['epoch']} waits for longer than it takes"
        if status == "ok" and row["train_loss"] is None:
            yield f"the loss of epoch {row['epoch']} is not finite, and the status ok"
        if complete and whole and row["iterations"] != math.ceil(row["samples"] / share):
            yield f"epoch {row['epoch']} has other iterations than its samples make"
        if not of_images(row["train_accuracy"], row["samples"]):
            yield f"epoch {row['epoch']} has an accuracy that is not that of its samples"
        yield from (f"epoch {row['epoch']} {what}" for what in _counters(row))
        samples[row["epoch"]] += row["samples"] if whole else images
    # The sampler gives all ranks the same number, so some images twice.
    if complete and not all(0 <= found - images < max(1, processes) for found in samples.values()):
        yield "an epoch has not the samples that the training set has"


def _counters(row: Any) -> Iterator[str]:
    """Yield what the counters of an epoch's GPUs cannot say."""
    readings = row["gpu_readings"]
    capped = [one["held_back_seconds"].get("power_cap") for one in readings]
    if capped and None not in capped and row["power_capped_seconds"] != max(capped):
        yield "has other seconds at the power limit than its GPUs"
    held = [seconds or 0.0 for one in readings for seconds in one["held_back_seconds"].values()]
    if max(held, default=0.0) > 1.05 * row["seconds"] + SLACK:
        yield "has GPUs held back for longer than it takes"
    joules = max((one["energy_joules"] or 0.0 for one in readings), default=0.0)
    if joules > MOST_WATTS * (row["seconds"] + SLACK):
        yield "takes more power than a GPU has"


def _parts(record: Any, processes: int) -> Iterator[str]:
    """Yield which parts of a run that came to its end do not fit the others."""
    rows, memory, read = record["epochs"], record["in_memory"], record["communication"]["readings"]
    asked, model, start = record["training"], record["model"], record["startup"] or {"total": 0.0}
    count = Counter(row["role"] for row in rows if row["rank"] == 0)
    few = count["warmup"] < asked["warmup_epochs"] or count["measured"] < asked["measured_epochs"]
    seconds = [sum(row["seconds"] for row in rows if row["rank"] == n) for n in range(processes)]
    ranks = [row["rank"] for row in (*memory, *read, *record["device_time"])]
    cell, shown = record["cell"], record["evaluation"] or {"test_accuracy": 0.0}
    share = cell["batch_size"] * cell["gpus"] // max(1, processes)
    spent = start["total"] + max(0.0, record["shutdown_seconds"] or 0.0) + max(seconds, default=0)
    buckets = sum(record["communication"]["bucket_bytes"])
    iterations = {row["rank"]: row["iterations"] for row in rows if row["role"] != "instrumented"}
    repeats = {len(row["seconds"]) for row in memory}
    repeats |= {len(row["seconds_without_exchange"] or row["seconds"]) for row in memory}
    parts = [itemgetter(*PARTS)(row) for row in read if PARTS[-1] in row]
    devices = [row for row in record["device_time"] if "compute_seconds" in row]
    peak = record["memory"]["peak_bytes"]
    wrong = {
        f"status {record['status']} without a measured epoch": not count["measured"],
        "fewer epochs than asked for": record["status"] == "ok" and few,
        "epochs that take longer than the run": spent > 1.001 * (record["run_seconds"] or math.inf),
        "another settling than that of the epochs": record["settling"] != settling(rows),
        "a start that is not its phases": not math.isclose(sum(start.values()), 2 * start["total"]),
        "gradients not as many as parameters": (model["gradient_bytes"] or 0)
        != 4 * (model["parameters"] or 0),
        "not every rank's weights and memory": len(model["parameters_sha256"]) != processes
        or len(record["memory"]["peak_bytes"]) not in (0, processes, cell["gpus"]),
        "more memory than there is": max(peak, default=0)
        > (record["memory"]["capacity_bytes"] or math.inf),
        "less memory than its parameters": record["memory"]["kind"] == "device"
        and 0 < 2 * cell["gpus"] * min(peak, default=0) < (model["gradient_bytes"] or 0),
        "a model of another width": model["width"] != asked.get("model_width", model["width"]),
        "another model or options than asked for": model["name"]
        != asked.get("model", model["name"])
        or model["options"] != asked.get("model_options", model["options"]),
        "a test accuracy that is not that of its images": not of_images(
            shown["test_accuracy"], record["dataset"]["test_images"]
        ),
        "messages that are less than the gradients": 0 < buckets < (model["gradient_bytes"] or 0),
        "instruments of other ranks or GPUs": max(ranks, default=0) >= processes
        or len(memory) not in (0, processes)
        or any(row.get("gpu", 0) >= cell["gpus"] for row in record["device_time"]),
        "instruments of more iterations than an epoch's": any(
            row["iterations"] > iterations.get(row["rank"], math.inf)
            for row in (*read, *record["device_time"])
        ),
        "other iterations in memory than its samples make": any(
            row["samples"] and math.ceil(row["samples"] / share) != row["iterations"]
            for row in memory
        ),
        "unlike repeats of ranks": len({row["iterations"] for row in memory}) > 1
        or len(repeats) > 1,
        "communication that is not its parts": not all(
            math.isclose(whole, exposed + overlapped, rel_tol=1e-6)
            for whole, exposed, overlapped in parts
        ),
        "a device that computes for longer than it is busy": any(
            row["compute_seconds"] > 1.000001 * row["busy_seconds"] for row in devices
        ),
    }
    yield from (what for what, found in wrong.items() if found)
