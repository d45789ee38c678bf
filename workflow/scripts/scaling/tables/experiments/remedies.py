"""Accuracy of each technique at each global batch, and its gain over a training without it."""

from typing import Any

import pandas as pd

from scaling.tables import schema
from scaling.tables.experiments.best_remedy import (
    base_rate,
    difference,
    is_plain,
    plain_sweep,
    reference_epochs,
    same_runs,
)

MEANS = ["train_loss", "train_accuracy", "test_loss", "test_accuracy"]
SWEPT, AT_BASE_RATE = "plain SGD with its rate swept alike", "plain SGD at the base rate"


def remedies(runs: pd.DataFrame, margin: float) -> pd.DataFrame:
    """Return one row per technique and global batch, from the table of `runs`.

    Values are means over the seeds of the chosen rate, out of `rates` that were tried;
    `validation_accuracy` is the sweep's on held-out images. `epochs` and `updates` are completed,
    `planned_…` requested. `test_difference` is to the reference, `accuracy_margin` the loss that
    counts as none. A seed "at chance" has values and counts as diverged.

    `gain` is the difference in mean test accuracy with and without a technique, above the
    reference's global batch and at equal epochs, with its 95 % interval. A technique with a
    learning rate sweep is compared with swept plain SGD, each at its best rate, others with plain
    SGD at the base rate. `compared_at_edge`: plain SGD's best rate is at an end
    of its sweep, so that it might be better still.
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
    for name in epochs[epochs == reference_epochs(table)].index:
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
    row |= {"compared_with": "", "compared_at_edge": False, "same_as_compared": False}
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


def _gain(row: Any, runs: pd.DataFrame, swept: pd.DataFrame | None) -> dict[str, Any]:
    """Return the columns of the gain of one technique over plain SGD, which is `swept` or not.

    `runs` are those of its global batch; `swept` is the table of remedies.
    """
    own, plain = runs[runs["remedy"] == row.remedy], base_rate(runs)
    if swept is not None:
        sweep = plain_sweep(swept, int(row.global_batch))
        plain = runs[runs["remedy"] == (sweep.remedy if sweep else None)]
    if own.empty or plain.empty:
        return {}
    found = {
        "compared_with": AT_BASE_RATE if swept is None else SWEPT,
        "compared_at_edge": swept is not None and bool(plain["at_edge"].eq(True).any()),
        "same_as_compared": same_runs(own, plain),
    }
    if found["same_as_compared"]:
        return found
    gain = difference(own, plain)
    return found | {"gain": gain.mean, "gain_low": gain.low, "gain_high": gain.high}
