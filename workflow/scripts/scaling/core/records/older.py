"""Bring records that older code wrote to today's schemas.

A function here changes a record in place where it lacks what today's have, and only there.
"""

import re
from collections.abc import Callable
from typing import Any

from scaling.core.settling import settling

CAPACITY = r"total capacity of ([\d.]+) GiB"
"""What a GPU's memory holds, as PyTorch says where that was too little."""


def run(record: Any) -> None:
    """Give a run null for what was not measured then, and what it did not vary."""
    record["cell"].setdefault("repeat", 0)
    for key in ("startup", "run_seconds", "shutdown_seconds"):
        record.setdefault(key, None)
    for key in ("flops_per_image", "activation_bytes_per_image"):
        record["model"].setdefault(key, None)
    record["model"].setdefault("options", {})
    training = record["training"]
    for key in ("recipe_applied", "compiled_batch_sizes", "compiled_graphs"):
        training.setdefault(key, None)
    training.setdefault("micro_batches", 1)
    training.setdefault("measured_seconds", 0.0)
    record["dataset"].setdefault("image_shape", [32, 32, 3])
    told = re.search(CAPACITY, record["message"] or "")
    record["memory"].setdefault("capacity_bytes", float(told[1]) * 2**30 if told else None)
    for epoch in record["epochs"]:
        epoch.setdefault("power_capped_seconds", None)
        epoch.setdefault("gpu_readings", [])
    record.setdefault("settling", settling(record["epochs"]))
    record["device_time"] = [
        _device_time(rank, record["cell"]["gpus"]) for rank in record.get("device_time", [])
    ]
    readings = record["communication"].setdefault("readings", [])
    record.setdefault("in_memory", _in_memory(record["device_time"], readings))
    record["communication"]["readings"] = [one for one in readings if "seconds" not in one]


def _device_time(rank: dict[str, Any], gpus: int) -> dict[str, Any]:
    """Complete one GPU's busy time: all it did was to compute where it did not communicate."""
    if "busy_seconds" not in rank or "compute_seconds" in rank:
        return rank
    if gpus == 1:
        return {**rank, "compute_seconds": rank["busy_seconds"]}
    note = "computing was not told from communicating"
    return {"rank": rank["rank"], "iterations": 0, "note": note}


def _in_memory(
    device_time: list[dict[str, Any]], readings: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Find steps in memory among those that were traced, or timed with and without exchange."""
    found: dict[int, dict[str, Any]] = {}
    for rank in device_time:
        if rank["iterations"]:
            found[rank["rank"]] = {**rank, "seconds": [rank["seconds"]], "seconds_without": None}
    found |= {rank["rank"]: rank for rank in readings if "seconds_without" in rank}
    return [
        {
            **{key: rank[key] for key in ("rank", "iterations", "seconds")},
            "samples": None,
            "seconds_without_exchange": rank["seconds_without"],
        }
        for rank in found.values()
    ]


def sweep(record: Any) -> None:
    """Say of all-reduces that Python launched each."""
    for row in record["rows"]:
        row.setdefault("launch", "eager")


def peaks(record: Any) -> None:
    """Call matrix products sprints: they took fractions of a second."""
    for row in record["rows"]:
        if row["quantity"] == "matrix_product":
            row.setdefault("state", "sprint")


def synchronization(record: Any) -> None:
    """Add what was not compared, and the widest batch norm: eight times ResNet-18's first."""
    record["model"].setdefault("widest_norm", 8 * record["parameters"]["model_width"])
    record.setdefault("buffer_seconds", [])
    record.setdefault("agreement", [])


def stages(record: Any) -> None:
    """Give a tutorial CNN an environment of which nothing is known."""
    record.setdefault("environment", {})


def resnet(record: Any) -> None:
    """Say of a ResNet-18 that its ranges were not kept, and that no GPU was timed."""
    record.setdefault("ranges", None)
    record.setdefault("gpu_speed", [])


UPGRADES: dict[str, Callable[[Any], None]] = {
    "run.json": run,
    "sweep.json": sweep,
    "peaks.json": peaks,
    "synchronization.json": synchronization,
    "stages.json": stages,
    "resnet18.json": resnet,
}
"""By the name of a record's file. Those of options are completed where these are declared."""
