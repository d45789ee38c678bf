"""What becomes of ranks whose buffers are broadcast, local or synchronized, as a table."""

from statistics import median
from typing import Any

import pandas as pd

COLUMNS = [
    *("buffers", "gpus", "seed", "epochs", "rank", "test_loss", "test_accuracy"),
    *("epoch_seconds", "epoch_seconds_min", "epoch_seconds_max", "count"),
    *("mean_drift_max", "mean_drift_mean", "variance_drift_max", "variance_drift_mean"),
    *("parameters_sha256", "buffers_sha256", "note"),
]
KINDS = ["broadcast", "local", "sync_batch_norm"]
ON_GPUS_ONLY = "not measured: SyncBatchNorm runs on GPUs only"


def buffers(documents: list[dict[str, Any]]) -> pd.DataFrame:
    """One row per kind of buffers and rank, of the first seed of every synchronization.json.

    Loss and accuracy are of the rank's own copy of the model on all test images. The other figures
    are the same in the rows of all ranks. Seconds of an epoch, the slowest rank's, are median,
    minimum, maximum and count over all trainings with such buffers, whatever their seed and order,
    without the first epoch of each. The drift is that of `synchronization.drift`, relative. What
    the machine cannot run has one row with a note.
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
                **_seconds([one for one in document["trainings"] if one["buffers"] == kind]),
                **{name.replace("_", "_drift_"): value for name, value in drifts},
                "note": "",
            }
            rows += [{**shared, **rank} for rank in one["ranks"]]
    return pd.DataFrame(rows, columns=COLUMNS)


def _seconds(trainings: list[dict[str, Any]]) -> dict[str, float]:
    slowest = [
        seconds
        for one in trainings
        for epoch, seconds in pd.DataFrame(one["epochs"]).groupby("epoch")["seconds"].max().items()
        if epoch > 0
    ]
    return {
        "epoch_seconds": median(slowest),
        "epoch_seconds_min": min(slowest),
        "epoch_seconds_max": max(slowest),
        "count": len(slowest),
    }
