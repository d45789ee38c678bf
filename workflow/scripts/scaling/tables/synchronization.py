"""Tables of the synchronization experiments: image orders, messages of a step, buffers."""

from typing import Any

import pandas as pd

from scaling.tables import schema

CONTENTS = {
    ("forward", "all_gather"): "batch statistics",
    ("forward", "scatter"): "images",
    ("forward", "gather"): "outputs",
    ("backward", "all_reduce"): "gradients",
    ("backward", "reduce"): "gradients",
    ("backward", "reduce_scatter"): "gradients",
    ("backward", "all_gather"): "parameters",
    ("update", "broadcast"): "parameters",
    ("backward", "scatter"): "gradients of outputs",
}
"""What a message carries, where its phase and kind determine that."""
BYTES_PER_CHANNEL = 2 * 4
"""Bytes that SyncBatchNorm's backward pass sums per channel: two float32 values."""


def sampler(documents: list[dict[str, Any]]) -> pd.DataFrame:
    """Return one row per training, epoch (from 0) and rank, with the numbers of images drawn.

    `first_epoch` is the first epoch in which the rank had the same order of images. For the other
    columns see `synchronization.worker.orders_of`.
    """
    rows = []
    for document in documents:
        for run in document["trainings"]:
            if run["buffers"] == "broadcast":
                orders = pd.DataFrame(run["orders"])
                same = orders.groupby(["rank", "order_sha256"])["epoch"]
                orders["first_epoch"] = same.transform("min")
                rows += [{**document, **run, **row} for row in orders.to_dict("records")]
    return schema.frame("sampler", rows)


def collectives(documents: list[dict[str, Any]]) -> pd.DataFrame:
    """Return one row per message of a rank, in order of sending; step 0 is before training."""
    rows = [
        {**document, **step, **message, "gradient_bytes": document["model"]["parameter_bytes"]}
        | {"content": _content(message, step["way"], document["model"])}
        for document in documents
        for step in document["steps"]
        for message in step["messages"]
    ]
    return schema.frame("collectives", rows)


def _content(message: dict[str, Any], way: str, model: dict[str, Any]) -> str:
    """Return what a message carries, from its phase, kind, type and size; or "other"."""
    phase, kind, size = (message[key] for key in ("phase", "kind", "bytes"))
    if (phase, kind) == ("forward", "broadcast"):
        if message["dtype"] == "int32":
            return "order of buckets"
        return "parameters" if size > model["buffer_bytes"] else "buffers"
    if (way, phase, kind) == ("fsdp", "forward", "all_gather"):
        return "parameters"
    synchronized = way == "ddp, SyncBatchNorm" and phase == "backward"
    if synchronized and size <= model["widest_norm"] * BYTES_PER_CHANNEL:
        return "batch statistics"
    return CONTENTS.get((phase, kind), "set-up" if phase == "start" else "other")


def buffers(documents: list[dict[str, Any]]) -> pd.DataFrame:
    """Return one row per buffer mode and rank, for the first seed: metrics, drift and hashes.

    For the columns of drift see `synchronization.worker.drift`.
    """
    rows = []
    for document in documents:
        first: dict[str, dict[str, Any]] = {}
        for one in document["trainings"]:
            if one["set_epoch"]:
                first.setdefault(one["buffers"], one)
        for one in first.values():
            shared = {**one, "gpus": document["gpus"]}
            shared["epochs"] = 1 + max(row["epoch"] for row in one["orders"])
            shared |= {name.replace("_", "_drift_"): drift for name, drift in one["drift"].items()}
            rows += [{**shared, **rank} for rank in one["ranks"]]
    return schema.frame("buffers", rows)
