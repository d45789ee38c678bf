"""What becomes of ranks whose buffers are broadcast, local or synchronized, as a table."""

from collections import defaultdict
from statistics import median
from typing import Any

import pandas as pd

from scaling.tables import schema

COLUMNS = schema.columns("buffers")
KINDS = ["broadcast", "local", "sync_batch_norm"]
ON_GPUS_ONLY = "not measured: SyncBatchNorm runs on GPUs only"


def buffers(documents: list[dict[str, Any]]) -> pd.DataFrame:
    """One row per kind of buffers and rank, of the first seed of every synchronization.json.

    Loss and accuracy are of the rank's own copy of the model on all test images. The other figures
    are the same in the rows of all ranks. Seconds of an epoch on batches in memory, the slowest
    rank's, are median, minimum, maximum and count over the rounds of
    `synchronization.buffer_seconds`; a record without these has a count of 0. The drift is that of
    `synchronization.drift`, relative. What the machine cannot run has one row with a note.
    """
    rows = []
    for document in documents:
        told = [one for one in document["trainings"] if one["set_epoch"]]
        first = {one["buffers"]: one for one in reversed(told)}
        for kind in KINDS:
            place = {"buffers": kind, "gpus": document["gpus"]}
            if kind not in first:
                rows.append({**place, "note": ON_GPUS_ONLY})
                continue
            one = first[kind]
            drifts = one["drift"].items()
            shared = {
                **place,
                "seed": one["seed"],
                "epochs": 1 + max(row["epoch"] for row in one["epochs"]),
                **_seconds(document, kind),
                **{name.replace("_", "_drift_"): value for name, value in drifts},
                "note": "",
            }
            rows += [{**shared, **rank} for rank in one["ranks"]]
    return pd.DataFrame(rows, columns=COLUMNS)


def _seconds(document: dict[str, Any], kind: str) -> dict[str, float]:
    slowest: dict[int, float] = defaultdict(float)
    for row in document.get("buffer_seconds", []):
        if row["buffers"] == kind:
            slowest[row["round"]] = max(slowest[row["round"]], row["seconds"])
    if not slowest:
        return {"count": 0}
    return {
        "epoch_seconds": median(slowest.values()),
        "epoch_seconds_min": min(slowest.values()),
        "epoch_seconds_max": max(slowest.values()),
        "count": len(slowest),
    }
