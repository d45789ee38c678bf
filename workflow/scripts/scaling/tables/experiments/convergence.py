"""Tables of the large-batch records: runs, and images to an accuracy."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from scaling.core.records.convergence import ConvergenceRecord
from scaling.registry.update_rule import Technique
from scaling.tables import schema
from scaling.tables.experiments.remedies import is_plain


def runs(records: Sequence[ConvergenceRecord]) -> pd.DataFrame:
    """Return one row per run, with metrics after its last epoch, NaN where not finite.

    A technique that could not run has one row with its `status` and `message`. `chosen` runs have
    the rate with the lowest loss, on held-out images or else in training. The chosen runs of
    `reference` are the baseline of all others: the reference batch on one GPU, plain SGD, with the
    widest learning rate sweep. `options` are those that differ from plain SGD's; `factor` 1 is the
    rate of the technique's rule; `at_edge` tells whether the sweep's best rate is at an end. Runs
    with `held_out` images have metrics of these, `validation_…`, and none of the test set.
    """
    reference = _reference(records)
    rows = []
    for record in records:
        own: dict[str, Any] = {
            **record,
            "options": _options(record),
            "reference": record is reference,
        }
        if not record["result"]:
            rows.append(own)
            continue
        own |= record["result"] | {"batch_size": record["global_batch"] // record["result"]["gpus"]}
        for run in record["result"]["runs"]:
            rows.append({**own, **run["epochs"][-1], **run, "epochs": len(run["epochs"])})
    return schema.frame("convergence", rows)


def _reference(records: Sequence[ConvergenceRecord]) -> ConvergenceRecord | None:
    """Return the record of the reference, or None."""
    plain = [
        (len({run["factor"] for run in record["result"]["runs"]}), record)
        for record in records
        if record["result"]
        and record["global_batch"] == record["training"]["reference_batch"]
        # At the reference batch every scaling rule gives the base rate.
        and is_plain(_options(record))
    ]
    return max(plain, key=lambda each: each[0])[1] if plain else None


def _options(record: ConvergenceRecord) -> str:
    """Return the options that differ from plain SGD's and change a run, in words."""
    plain = Technique().model_dump(exclude={"factors", "lengths"})
    changed = {name: value for name, value in record["options"].items() if name in plain}
    return ", ".join(
        (name if value else f"no {name}")
        if isinstance(value, bool)
        else f"{name} {format(value, 'g') if isinstance(value, float) else value}"
        for name, value in changed.items()
        if value != plain[name] and value is not None
    )


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
            found = _epochs_to(accuracy, epochs)
            found |= {"accuracy": accuracy, "images": found["epochs"] * images}
            rows.append(dict(zip(keys, names, strict=True)) | found)
    order = ["global_batch", "accuracy", "epochs", "epochs_max", "epochs_min"]
    table = schema.frame("images_to_accuracy", rows).sort_values(order, kind="stable")
    return table.drop_duplicates(order[:2], ignore_index=True)


def _epochs_to(target: float, epochs: pd.DataFrame) -> dict[str, Any]:
    """Return the epochs and updates until the seeds reach the target: the median, or infinity.

    Of two middle values it is the higher: there is nothing between 3 and infinity.
    """
    reached = epochs[epochs["test_accuracy"] >= target].groupby("seed")[["epoch", "updates"]].min()
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
