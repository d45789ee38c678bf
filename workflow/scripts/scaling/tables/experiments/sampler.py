"""The orders in which ranks saw the images, and what trainings made of them, as tables."""

from typing import Any

import pandas as pd

from scaling.tables import schema

COLUMNS = schema.columns("sampler")
ACCURACY_COLUMNS = schema.columns("sampler_accuracy")


def orders(documents: list[dict[str, Any]]) -> pd.DataFrame:
    """One row per sampler, epoch and rank, of every synchronization.json.

    `trained` says that a training drew it; the others were drawn for the table alone. `set_epoch`
    is whether the sampler was told the epoch (a RandomSampler cannot be). `first_epoch` is the
    first epoch in which that rank had this very order: `epoch` itself when it is new. Epochs count
    from 0; the other columns are those of `shards.describe`.
    """
    rows = []
    for document in documents:
        drawn = [{**one, "trained": False} for one in document["permutations"]]
        own = {"sampler": "DistributedSampler", "gpus": document["gpus"], "trained": True}
        drawn += [
            own | {key: one[key] for key in ("set_epoch", "seed", "orders")}
            for one in document["trainings"]
            if one["buffers"] == "broadcast"
        ]
        for one in drawn:
            keys = ("sampler", "gpus", "set_epoch", "trained", "seed")
            shared = {key: one[key] for key in keys}
            first: dict[tuple[int, str], int] = {}
            for row in one["orders"]:
                seen = first.setdefault((row["rank"], row["order_sha256"]), row["epoch"])
                rows.append({**shared, **row, "first_epoch": seen})
    return pd.DataFrame(rows, columns=COLUMNS)


def accuracy(documents: list[dict[str, Any]]) -> pd.DataFrame:
    """One row per training whose buffers were broadcast: with and without set_epoch, by seed.

    Loss and accuracy (a fraction) of the last epoch over all ranks, and on the test images with the
    model of rank 0; a loss that was not finite is empty.
    """
    rows = []
    for document in documents:
        for one in document["trainings"]:
            if one["buffers"] != "broadcast":
                continue
            last = max(row["epoch"] for row in one["epochs"])
            ranks = pd.DataFrame([row for row in one["epochs"] if row["epoch"] == last])
            rows.append(
                {
                    "gpus": document["gpus"],
                    "seed": one["seed"],
                    "set_epoch": one["set_epoch"],
                    "epochs": last + 1,
                    **{
                        name: _mean(ranks[name], ranks["samples"])
                        for name in ("train_loss", "train_accuracy")
                    },
                    **{name: one["ranks"][0][name] for name in ("test_loss", "test_accuracy")},
                }
            )
    return pd.DataFrame(rows, columns=ACCURACY_COLUMNS)


def _mean(values: pd.Series, samples: pd.Series) -> float:
    """The mean over all samples; NaN where a rank has no value."""
    return float((values.astype(float) * samples).sum(skipna=False) / samples.sum())
