"""Every message of a training step as a table: what it carries, and how large it is beside K."""

from typing import Any

import pandas as pd

from scaling.tables import schema

COLUMNS = schema.columns("collectives")
WAYS = ["ddp", "ddp, buffers local", "ddp, SyncBatchNorm", "tuned", "dp"]
"""In the order of the table; each that a machine cannot run has one row that says so."""
ON_GPUS_ONLY = {
    "ddp, SyncBatchNorm": "not measured: SyncBatchNorm runs on GPUs only",
    "dp": "not measured: DataParallel on several devices runs on GPUs only",
}
BYTES_PER_CHANNEL = 2 * 4
"""SyncBatchNorm's backward pass sums two float32 numbers for each channel over the ranks."""
LAST_STAGE = 8
"""Channels of ResNet-18's last stage, in widths of its first."""


def collectives(documents: list[dict[str, Any]]) -> pd.DataFrame:
    """One row per message, in the order of sending, of every synchronization.json.

    Step 0 is what is sent once, before the first step. `bytes` is what one rank sends of its own
    (DataParallel: one copy, or the whole batch for scatter and gather); `gradient_bytes` is K.
    """
    rows = []
    for document in documents:
        found = {one["way"]: one for one in document["steps"]}
        shared = {
            "gpus": document["gpus"],
            "backend": document["backend"],
            "gradient_bytes": document["model"]["parameter_bytes"],
            "buffer_bytes": document["model"]["buffer_bytes"],
        }
        for way in WAYS:
            if way not in found:
                rows.append({"way": way, **shared, "note": ON_GPUS_ONLY.get(way, "not measured")})
                continue
            one = found[way]
            for index, message in enumerate(one["messages"], start=1):
                rows.append(
                    {
                        **shared,
                        **message,
                        "way": way,
                        "position": index,
                        "content": content(message, one, document),
                        "ranks_agree": one["ranks_agree"],
                        "note": "",
                    }
                )
    return pd.DataFrame(rows, columns=COLUMNS)


def content(message: dict[str, Any], way: dict[str, Any], document: dict[str, Any]) -> str:
    """What a message carries, from its phase, kind, type and size; "other" where nothing fits."""
    rules = {"start": _at_start, "forward": _forward, "backward": _backward}
    rule = rules.get(message["phase"])
    return rule(message, way, document) if rule else "other"


def _at_start(message: dict[str, Any], way: dict[str, Any], document: dict[str, Any]) -> str:
    """The last messages of the start, as many as make up the model, are the model itself."""
    start = [row for row in way["messages"] if row["phase"] == "start"]
    position = next(index for index, row in enumerate(start) if row is message)
    rest = sum(row["bytes"] for row in start[position:])
    model = document["model"]["parameter_bytes"] + document["model"]["buffer_bytes"]
    return "parameters and buffers" if rest <= model else "shapes"


def _forward(message: dict[str, Any], way: dict[str, Any], document: dict[str, Any]) -> str:
    if message["kind"] == "broadcast":
        if message["dtype"] == "int32":
            return "order of buckets"
        whole = message["bytes"] == document["model"]["parameter_bytes"]
        return "parameters" if whole else "buffers"
    kinds = {"all_gather": "batch statistics", "scatter": "images", "gather": "outputs"}
    return kinds.get(message["kind"], "other")


def _backward(message: dict[str, Any], way: dict[str, Any], document: dict[str, Any]) -> str:
    widest = LAST_STAGE * document["parameters"]["model_width"] * BYTES_PER_CHANNEL
    if way["way"] == "ddp, SyncBatchNorm" and message["bytes"] <= widest:
        return "batch statistics"
    kinds = {"all_reduce": "gradients", "reduce": "gradients", "scatter": "gradients of outputs"}
    return kinds.get(message["kind"], "other")
