"""Tables on synchronization: image orders, messages of a step, buffers of the ranks.

Each is made from the records synchronization.json, one per number of GPUs.
"""

from typing import Any

import pandas as pd

from scaling.tables import schema

BUFFERS = ["broadcast", "local", "sync_batch_norm"]
WAYS = ["ddp", "ddp, buffers local", "ddp, SyncBatchNorm", "tuned", "dp", "fsdp", "zero1"]
"""Parallel modes in table order; a machine without GPUs does not support all."""
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
"""What a message carries, if its phase and kind determine it."""
BYTES_PER_CHANNEL = 2 * 4
"""SyncBatchNorm's backward pass sums two float32 values per channel over the ranks."""


def orders(documents: list[dict[str, Any]]) -> pd.DataFrame:
    """Return one row per sampler, epoch and rank.

    `trained` is True for orders of a training; others were only drawn. `set_epoch` is whether
    sampler.set_epoch was called (a RandomSampler has none). `first_epoch` is the first epoch in
    which that rank had this order: `epoch` itself if it is new. Epochs count from 0; for the other
    columns see `synchronization.training.orders_of`.
    """
    rows = []
    for document in documents:
        own = {"sampler": "DistributedSampler", "gpus": document["gpus"], "trained": True}
        drawn = [one | {"trained": False} for one in document["permutations"]]
        for one in [*drawn, *(own | one for one in _broadcast(document))]:
            first: dict[tuple[int, str], int] = {}
            for row in one["orders"]:
                seen = first.setdefault((row["rank"], row["order_sha256"]), row["epoch"])
                rows.append({**one, **row, "first_epoch": seen})
    return schema.frame("sampler", rows)


def _broadcast(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the trainings with broadcast buffers."""
    return [one for one in document["trainings"] if one["buffers"] == "broadcast"]


def collectives(documents: list[dict[str, Any]]) -> pd.DataFrame:
    """Return one row per message, in sending order.

    Step 0 is sent once, before the first step. `bytes` are what one rank sends (DataParallel: one
    copy, or the whole batch for scatter and gather); `gradient_bytes` is K.
    """
    rows = []
    for document in documents:
        model = document["model"]
        sizes = {"gradient_bytes": model["parameter_bytes"], "buffer_bytes": model["buffer_bytes"]}
        for one in sorted(document["steps"], key=lambda one: WAYS.index(one["way"])):
            shared = {**document, **sizes, "way": one["way"], "ranks_agree": one["ranks_agree"]}
            rows += [
                {**shared, **message, "position": index, "content": _content(message, one, model)}
                for index, message in enumerate(one["messages"], start=1)
            ]
    return schema.frame("collectives", rows)


def _content(message: dict[str, Any], way: dict[str, Any], model: dict[str, Any]) -> str:
    """Return what a message carries, by its phase, kind, type and size; else "other"."""
    phase, kind, size = (message[key] for key in ("phase", "kind", "bytes"))
    if phase == "start":
        # The last messages of the start that add up to the model's size are the model.
        start = [row for row in way["messages"] if row["phase"] == "start"]
        position = next(index for index, row in enumerate(start) if row is message)
        rest = sum(row["bytes"] for row in start[position:])
        whole = model["parameter_bytes"] + model["buffer_bytes"]
        return "parameters and buffers" if rest <= whole else "shapes"
    if (phase, kind) == ("forward", "broadcast"):
        if message["dtype"] == "int32":
            return "order of buckets"
        return "parameters" if size == model["parameter_bytes"] else "buffers"
    if (way["way"], phase, kind) == ("fsdp", "forward", "all_gather"):
        return "parameters"
    synchronized = way["way"] == "ddp, SyncBatchNorm" and phase == "backward"
    if synchronized and size <= model["widest_norm"] * BYTES_PER_CHANNEL:
        return "batch statistics"
    return CONTENTS.get((phase, kind), "other")


def buffers(documents: list[dict[str, Any]]) -> pd.DataFrame:
    """Return one row per buffer mode and rank, of the first seed.

    Loss and accuracy are of the rank's own model on all test images. For the relative drift, equal
    for all ranks, see `synchronization.training.drift`.
    """
    rows = []
    for document in documents:
        with_set_epoch = [one for one in document["trainings"] if one["set_epoch"]]
        first = {one["buffers"]: one for one in reversed(with_set_epoch)}
        for one in sorted(first.values(), key=lambda one: BUFFERS.index(one["buffers"])):
            shared = {**one, "gpus": document["gpus"]}
            shared["epochs"] = 1 + max(row["epoch"] for row in one["epochs"])
            shared |= {name.replace("_", "_drift_"): drift for name, drift in one["drift"].items()}
            rows += [{**shared, **rank} for rank in one["ranks"]]
    return schema.frame("buffers", rows)
