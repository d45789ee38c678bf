"""Tables of the large-batch records: runs and techniques.

Options are those of the tables, in words: text with ", " between them.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from scaling.core import statistics
from scaling.core.records.convergence import ConvergenceRecord
from scaling.core.statistics import Difference
from scaling.registry.update_rule import Technique
from scaling.tables import schema

MEANS = ["train_loss", "train_accuracy", "test_loss", "test_accuracy"]
OTHER_UPDATES = "muon |lars "
"""Options that replace SGD's update."""


def runs(records: Sequence[ConvergenceRecord]) -> pd.DataFrame:
    """Return one row per run, with metrics after its last epoch, NaN where not finite.

    A technique that could not run has one row. `chosen` runs have the rate with the lowest loss, on
    held-out images or else in training. Those of `reference` are the baseline of all others: plain
    SGD at the reference batch, with the widest sweep. `factor` 1 is the rate of the technique's
    rule; `at_edge` tells whether the sweep's best rate is at an end.
    """
    plain = {
        index: len({run["factor"] for run in record["result"]["runs"]})
        for index, record in enumerate(records)
        if record["result"]
        and record["global_batch"] == record["training"]["reference_batch"]
        # At the reference batch every scaling rule gives the base rate.
        and _changed(record).keys() <= {"scaling"}
    }
    reference = max(plain, key=lambda index: plain[index], default=None)
    rows = []
    for index, record in enumerate(records):
        own: dict[str, Any] = {**record, "reference": index == reference}
        own["options"] = ", ".join(_changed(record).values())
        if not record["result"]:
            rows.append(own)
            continue
        own |= record["result"] | {"batch_size": record["global_batch"] // record["result"]["gpus"]}
        for run in record["result"]["runs"]:
            rows.append({**own, **run["epochs"][-1], **run, "epochs": len(run["epochs"])})
    return schema.frame("convergence", rows)


def _changed(record: ConvergenceRecord) -> dict[str, str]:
    """Return the options that differ from plain SGD's and change a run, in words."""
    plain = Technique().model_dump(exclude={"factors"})
    return {
        name: (name if value else f"no {name}")
        if isinstance(value, bool)
        else f"{name} {format(value, 'g') if isinstance(value, float) else value}"
        for name, value in record["options"].items()
        if name in plain and value != plain[name] and value is not None
    }


def remedies(runs: pd.DataFrame, margin: float) -> pd.DataFrame:
    """Return one row per technique and global batch, from the table of `runs`.

    Values are means over the seeds of the chosen rate; `validation_accuracy` is the sweep's on
    held-out images. `epochs` and `updates` are completed, `planned_…` requested. `accuracy_margin`
    is the loss that counts as none. A seed "at chance" has values and counts as diverged.
    """
    groups = runs.groupby(["remedy", "global_batch"], sort=False)
    rows = [_remedy(group) | {"accuracy_margin": margin} for _, group in groups]
    return schema.frame("remedies", rows)


def _remedy(group: pd.DataFrame) -> dict[str, Any]:
    same = ["remedy", "options", "global_batch", "gpus", "batch_size", "status", "message"]
    row = dict(group.iloc[0][[*same, "reference", "at_edge"]])
    chosen = group[group["chosen"].eq(True)]
    if chosen.empty:
        return row
    row |= dict(chosen.iloc[0][["factor", "learning_rate"]])
    row |= dict(chosen[["epochs", "updates", "planned_epochs", "planned_updates"]].max())
    held_out = group[group["held_out"] & (group["factor"] == row["factor"])]
    row |= dict(chosen[MEANS].mean())
    row |= {f"test_accuracy_{end}": chosen["test_accuracy"].agg(end) for end in ("min", "max")}
    return row | {
        "seeds": len(chosen),
        "diverged_seeds": int((chosen["diverged"] != "").sum()),
        "validation_accuracy": held_out["validation_accuracy"].mean(),
    }


def best(table: pd.DataFrame, global_batch: int, sgd: bool = False) -> Any | None:
    """Return the row of `remedies` with the highest accuracy on held-out images, or None.

    So the test set can judge the choice. Rows have as many epochs as the reference, and no diverged
    seed. `sgd` excludes Muon and LARS.
    """
    epochs = table.loc[table["reference"].eq(True), "planned_epochs"].max()
    trained = table["validation_accuracy"].notna() & (table["diverged_seeds"] == 0)
    equal = (table["planned_epochs"] == epochs) & (table["global_batch"] == global_batch)
    rows = table[trained & equal]
    if sgd:
        rows = rows[~rows["options"].str.contains(OTHER_UPDATES)]
    return next(rows.nlargest(1, "validation_accuracy").itertuples(), None)


def difference(own: pd.DataFrame, other: pd.DataFrame) -> Difference:
    """Return the mean test accuracy of `own` runs minus that of `other`, with Welch's interval.

    There is no interval if a loss was not finite, as the remaining seeds are a biased selection.
    """
    samples = [runs["test_accuracy"].dropna().tolist() for runs in (other, own)]
    if not all(samples):
        return Difference(math.nan, math.nan, math.nan)
    if pd.concat([own["diverged"], other["diverged"]]).eq("not finite").any():
        return Difference(float(np.mean(samples[1]) - np.mean(samples[0])), math.nan, math.nan)
    return statistics.difference(*samples)
