"""Tables of the large-batch records: runs and techniques."""

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

OTHER_UPDATES = "muon |lars "
"""Options that replace SGD's update."""
SAME = ["remedy", "options", "global_batch", "status", "message", "reference", "at_edge"]
CHOSEN = ["factor", "learning_rate", "planned_epochs", "planned_updates"]


def runs(records: Sequence[ConvergenceRecord]) -> pd.DataFrame:
    """Return a row per run, with metrics after its last epoch; a technique without runs has one.

    Those of `reference` are the baseline: plain SGD at the reference batch, with the widest sweep.
    """
    reference = max(records, key=_rates_of_plain_sgd, default=None)
    rows: list[dict[str, Any]] = []
    for record in records:
        own: dict[str, Any] = {**record, **(record["result"] or {"runs": []})}
        own["options"] = ", ".join(_changed(record).values())
        own["reference"] = record is reference and _rates_of_plain_sgd(record) > 0
        rows += [
            {**own, **run["epochs"][-1], **run, "epochs": len(run["epochs"])} for run in own["runs"]
        ] or [own]
    return schema.frame("convergence", rows)


def _rates_of_plain_sgd(record: ConvergenceRecord) -> int:
    """Return the number of rates tried at the reference batch; 0 for other techniques."""
    at_reference = record["global_batch"] == record["training"]["reference_batch"]
    # There every scaling rule gives the base rate.
    plain = at_reference and _changed(record).keys() <= {"scaling"}
    result = record["result"] if plain else None
    return len({run["factor"] for run in result["runs"]}) if result else 0


def _changed(record: ConvergenceRecord) -> dict[str, str]:
    """Return the options that differ from plain SGD's and change a run, in words."""
    plain = Technique().model_dump(exclude={"factors"})
    said = {}
    for name, value in record["options"].items():
        if name in plain and value not in (plain[name], None):
            number = f"{value:g}" if isinstance(value, float) else value
            on = name if value else f"no {name}"
            said[name] = on if isinstance(value, bool) else f"{name} {number}"
    return said


def remedies(runs: pd.DataFrame, margin: float) -> pd.DataFrame:
    """Return one row per technique and global batch: means over the seeds of the chosen rate.

    `validation_accuracy` is the sweep's on held-out images; `margin` the loss that counts as none.
    """
    rows = []
    for _, group in runs.groupby(["remedy", "global_batch"], sort=False):
        row = dict(group.iloc[0][SAME]) | {"accuracy_margin": margin}
        chosen = group[group["chosen"].eq(True)]
        if len(chosen):
            row |= dict(chosen.iloc[0][CHOSEN])
            row |= dict(chosen["test_accuracy"].agg(["min", "max"]).add_prefix("test_accuracy_"))
            held_out = group[group["held_out"] & (group["factor"] == row["factor"])]
            row |= {
                "seeds": len(chosen),
                "diverged_seeds": int((chosen["diverged"] != "").sum()),
                "test_accuracy": chosen["test_accuracy"].mean(),
                "validation_accuracy": held_out["validation_accuracy"].mean(),
            }
        rows.append(row)
    return schema.frame("remedies", rows)


def best(table: pd.DataFrame, global_batch: int, sgd: bool = False) -> Any | None:
    """Return the row of `remedies` with the highest accuracy on held-out images, or None.

    It has as many epochs as the reference, and no diverged seed. `sgd` excludes Muon and LARS.
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
