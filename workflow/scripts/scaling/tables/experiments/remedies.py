"""Accuracy of each technique at each global batch, and its gain over a training without it.

Options are those of the tables, in words: text with ", " between them.
"""

import math
from typing import Any

import numpy as np
import pandas as pd

from scaling.core import statistics
from scaling.core.statistics import Difference
from scaling.tables import schema

MEANS = ["train_loss", "train_accuracy", "test_loss", "test_accuracy"]
SWEPT, AT_BASE_RATE = "plain SGD with its rate swept alike", "plain SGD at the base rate"
OTHER_UPDATES = "muon |lars "
"""Options that replace SGD's update."""


def is_plain(options: str) -> bool:
    """Return whether these options are plain SGD's, whatever the rate."""
    parts = filter(None, options.split(", "))
    return all(option.startswith("scaling ") for option in parts)


def base_rate(runs: pd.DataFrame) -> pd.DataFrame:
    """Return rows of chosen runs, or of remedies.csv, of plain SGD at the unscaled base rate."""
    plain = runs[(runs["options"] == "") & (runs["factor"] == 1)]
    return plain[plain["remedy"].isin(plain["remedy"].head(1))]


def best(table: pd.DataFrame, global_batch: int, sgd: bool = False) -> Any | None:
    """Return the row with the highest accuracy on held-out images at equal epochs, or None.

    So the test set can judge the choice. Rows have as many epochs as the reference, and no diverged
    seed. `sgd` excludes Muon and LARS.
    """
    equal = table["planned_epochs"] == _reference_epochs(table)
    trained = table["validation_accuracy"].notna() & (table["diverged_seeds"] == 0)
    rows = table[equal & trained & (table["global_batch"] == global_batch)]
    if sgd:
        rows = rows[~rows["options"].str.contains(OTHER_UPDATES)]
    return next(rows.nlargest(1, "validation_accuracy").itertuples(), None)


def _reference_epochs(table: pd.DataFrame) -> float:
    return float(table.loc[table["reference"].eq(True), "planned_epochs"].max())


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


def remedies(runs: pd.DataFrame, margin: float) -> pd.DataFrame:
    """Return one row per technique and global batch, from the table of `runs`.

    Values are means over the seeds of the chosen rate, out of `rates` that were tried;
    `validation_accuracy` is the sweep's on held-out images. `epochs` and `updates` are completed,
    `planned_…` requested. `test_difference` is to the reference, `accuracy_margin` the loss that
    counts as none. A seed "at chance" has values and counts as diverged.

    `gain` is the difference in mean test accuracy with and without a technique, above the
    reference's global batch and at equal epochs, with its 95 % interval. A technique with a
    learning rate sweep is compared with swept plain SGD, each at its best rate, others with plain
    SGD at the base rate. `compared_at_edge`: plain SGD's best rate is at an end of its sweep, so
    that it might be better still.
    """
    chosen = runs[runs["chosen"].eq(True)]
    reference = chosen[chosen["reference"].eq(True)]
    accuracy = reference["test_accuracy"].mean()
    groups = runs.groupby(["remedy", "global_batch"], sort=False)
    table = schema.frame("remedies", [_row(group, accuracy, margin) for _, group in groups])
    larger = table[table["global_batch"] > reference["global_batch"].max()]
    # All but plain SGD at the base rate and trainings longer than the reference.
    known = table[(table["options"] != "") | (table["rates"] > 1)]
    epochs = known.groupby("remedy", sort=False)["planned_epochs"].max()
    for name in epochs[epochs == _reference_epochs(table)].index:
        rows = larger[larger["remedy"] == name]
        swept = rows["rates"].max() > 1 and not rows["options"].map(is_plain).any()
        for row in schema.rows_of(rows):
            same_batch = chosen[chosen["global_batch"] == row.global_batch]
            found = _gain(row, same_batch, table if swept else None)
            table.loc[row.Index, list(found)] = list(found.values())
    return table


def _row(group: pd.DataFrame, reference: float, margin: float) -> dict[str, Any]:
    same = ("remedy", "options", "global_batch", "gpus", "batch_size", "status", "message")
    row = dict(group.iloc[0][[*same, "reference", "at_edge"]]) | {"accuracy_margin": margin}
    row |= {"compared_with": "", "compared_at_edge": False}
    chosen = group[group["chosen"].eq(True)]
    if chosen.empty:
        return row
    row |= dict(chosen.iloc[0][["factor", "learning_rate"]])
    row |= dict(chosen[["epochs", "updates", "planned_epochs", "planned_updates"]].max())
    row |= {
        "rates": group["learning_rate"].nunique(),
        "seeds": len(chosen),
        "diverged_seeds": int((chosen["diverged"] != "").sum()),
        "validation_accuracy": group.loc[
            group["held_out"] & (group["factor"] == row["factor"]), "validation_accuracy"
        ].mean(),
    }
    row |= dict(chosen[MEANS].mean())
    row |= {f"test_accuracy_{end}": chosen["test_accuracy"].agg(end) for end in ("min", "max")}
    if (chosen["diverged"] != "not finite").all() and not row["reference"]:
        row["test_difference"] = row["test_accuracy"] - reference
    return row


def _gain(row: Any, runs: pd.DataFrame, table: pd.DataFrame | None) -> dict[str, Any]:
    """Return the columns of the gain of one technique over plain SGD of the same global batch.

    With `table` of remedies it is the plain SGD with the largest sweep, of 2 rates or more.
    """
    own, plain = runs[runs["remedy"] == row.remedy], base_rate(runs)
    if table is not None:
        sweeps = table[(table["global_batch"] == row.global_batch) & (table["rates"] > 1)]
        sweeps = sweeps[sweeps["options"].map(is_plain).astype(bool)].nlargest(1, "rates")
        plain = runs[runs["remedy"].isin(sweeps["remedy"])]
    if own.empty or plain.empty:
        return {}
    gain = difference(own, plain)
    return {
        "compared_with": AT_BASE_RATE if table is None else SWEPT,
        "compared_at_edge": table is not None and bool(plain["at_edge"].eq(True).any()),
        **{"gain": gain.mean, "gain_low": gain.low, "gain_high": gain.high},
    }
