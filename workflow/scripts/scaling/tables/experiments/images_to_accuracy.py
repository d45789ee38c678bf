"""The images that each global batch needs to an accuracy, and the gradient noise scale."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from scaling.core.records.convergence import ConvergenceRecord
from scaling.tables import schema


def images_to_accuracy(
    records: Sequence[ConvergenceRecord], accuracies: Sequence[float]
) -> pd.DataFrame:
    """Return one row per test accuracy (a fraction) and global batch: the fewest images needed.

    It is the minimum over all techniques and all their lengths (`planned_epochs`) of the epochs
    until test accuracy first reaches the target: the median over the seeds at the chosen rate,
    `…_min` and `…_max`; infinite if never. `images` and `updates` are the median's. As in MLPerf's
    reference points, the best is chosen by these values themselves.
    """
    rows = []
    trained = _chosen_epochs(records, "runs", "longer")
    keys = ["global_batch", "remedy", "planned_epochs"]
    for names, epochs in pd.DataFrame(trained).groupby(keys, sort=False) if trained else ():
        first = epochs.iloc[0]
        images = first["training"]["train_images"] or first["dataset"]["train_images"]
        for accuracy in accuracies:
            found = epochs_to_target(epochs, "test_accuracy", accuracy)
            found |= {"accuracy": accuracy, "images": found["epochs"] * images}
            rows.append(dict(zip(keys, names, strict=True)) | found)
    order = ["global_batch", "accuracy", "epochs", "epochs_max", "epochs_min"]
    table = schema.frame("images_to_accuracy", rows).sort_values(order, kind="stable")
    return table.drop_duplicates(order[:2], ignore_index=True)


def epochs_to_target(epochs: pd.DataFrame, quantity: str, target: float) -> dict[str, Any]:
    """Return the epochs and updates until the seeds reach the target: the median, or infinity.

    Of two middle values it is the higher: there is nothing between 3 and infinity.
    """
    reached = epochs[epochs[quantity] >= target].groupby("seed")[["epoch", "updates"]].min()
    first = reached.astype(float).reindex(epochs["seed"].unique(), fill_value=math.inf)
    middle = first.apply(lambda values: sorted(values)[len(values) // 2])
    return {
        "seeds": len(first),
        "reached": len(reached),
        "epochs": middle["epoch"],
        "epochs_min": first["epoch"].min(),
        "epochs_max": first["epoch"].max(),
        "updates": middle["updates"],
    }


def noise_scale(records: Sequence[ConvergenceRecord]) -> pd.DataFrame:
    """Return one row per run and epoch with a gradient noise scale, in images with its interval.

    Includes runs at a chosen rate and the study's length; see `convergence.noise_scale`. Infinite
    where the gradient is not distinguishable from noise.
    """
    names = ("noise_scale", "noise_scale_low", "noise_scale_high")
    rows = [
        epoch | dict(zip(names, epoch["noise_scale"], strict=True))
        for epoch in _chosen_epochs(records, "runs")
        if epoch.get("noise_scale")
    ]
    return schema.frame("noise_scale", rows).fillna(dict.fromkeys(names, math.inf))


def _chosen_epochs(records: Sequence[ConvergenceRecord], *kinds: str) -> list[dict[str, Any]]:
    """Return the epochs of these kinds of runs at a chosen rate, each with its run and record."""
    return [
        {**record, **run, **epoch}
        for record in records
        for kind in kinds
        for run in (record["result"][kind] if record["result"] else [])
        if run["chosen"]
        for epoch in run["epochs"]
    ]
