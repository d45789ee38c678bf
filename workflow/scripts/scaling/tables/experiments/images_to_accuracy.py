"""The images that each global batch needs to an accuracy, and the gradient noise scale."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from scaling.core.records.convergence import ConvergenceRecord
from scaling.tables import schema
from scaling.tables.experiments.time_to_accuracy import epochs_to_target

_OF_AN_EPOCH = ["seed", "epoch", "updates", "test_accuracy", "train_images"]


def images_to_accuracy(
    records: Sequence[ConvergenceRecord], accuracies: Sequence[float]
) -> pd.DataFrame:
    """Return one row per test accuracy (a fraction) and global batch: the fewest images needed.

    It is the minimum over all techniques and all their lengths (`planned_epochs`) of the epochs
    until test accuracy first reaches the target: the median over the seeds at the chosen rate,
    `…_min` and `…_max`; infinite if never. `images` and `updates` are the median's. As in MLPerf's
    reference points, the best is chosen by these values themselves.
    """
    keys = ["global_batch", "remedy", "planned_epochs"]
    trained = pd.DataFrame(_epochs(records, "runs", "longer"), columns=[*keys, *_OF_AN_EPOCH])
    rows = [
        dict(zip(keys, names, strict=True))
        | epochs_to_target(epochs, "test_accuracy", accuracy)
        | {"accuracy": accuracy, "images": epochs["train_images"].iloc[0]}
        for names, epochs in trained.groupby(keys, sort=False)
        for accuracy in accuracies
    ]
    found = schema.frame("images_to_accuracy", rows)
    found["images"] *= found["epochs"]
    order = ["global_batch", "accuracy", "epochs", "epochs_max", "epochs_min"]
    return found.sort_values(order, kind="stable").drop_duplicates(order[:2], ignore_index=True)


def _epochs(records: Sequence[ConvergenceRecord], *kinds: str) -> list[dict[str, Any]]:
    """Return the epochs of these kinds of runs at a chosen rate, each with its run and record."""
    return [
        {**record, **run, **epoch}
        | {"train_images": record["training"]["train_images"] or record["dataset"]["train_images"]}
        for record in records
        for kind in kinds
        for run in (record["result"][kind] if record["result"] else [])
        for epoch in run["epochs"]
        if run["chosen"]
    ]


def along_small_batches(noise: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of noise_scale.csv of its first technique, at that one's smallest batch."""
    own = noise[noise["remedy"].isin(noise["remedy"].head(1))]
    return own[own["global_batch"] == own["global_batch"].min()]


def noise_scale(records: Sequence[ConvergenceRecord]) -> pd.DataFrame:
    """Return one row per run and epoch with a gradient noise scale, in images with its interval.

    Includes runs at a chosen rate and the study's length; see `convergence.noise_scale`. Infinite
    where the gradient is not distinguishable from noise.
    """
    names = ("noise_scale", "noise_scale_low", "noise_scale_high")
    rows = [
        epoch | dict(zip(names, epoch["noise_scale"], strict=True))
        for epoch in _epochs(records, "runs")
        if epoch.get("noise_scale")
    ]
    return schema.frame("noise_scale", rows).fillna(dict.fromkeys(names, math.inf))
