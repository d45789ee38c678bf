"""How long it takes to a fixed test accuracy, in epochs, in updates, and by the timing table."""

import math
from typing import Any

import pandas as pd

from scaling.tables import schema
from scaling.tables.experiments.best_remedy import evaluated_best
from scaling.tables.experiments.remedies import remedies

COLUMNS = schema.columns("time_to_accuracy")
_CELL = ["recipe", "strategy", "gpus", "batch_size"]
_PLACE = ["remedy", "global_batch"]


def time_to_accuracy(
    runs: pd.DataFrame, epochs: pd.DataFrame, timing: pd.DataFrame, margin: float
) -> pd.DataFrame:
    """One row per remedy, global batch and timed cell with that global batch, columns `COLUMNS`.

    The target is the mean test accuracy of the reference (plain SGD) after its last epoch, minus
    `margin`. A seed needs the epochs until its test accuracy first is as high, infinitely many if
    it never is; of them the median over the seeds of the chosen rate, and `…_min`, `…_max`.

    `best` is, at each global batch, the remedy that training accuracy chooses, so that the test set
    may judge the choice: the one whose training accuracy needs the fewest epochs to the reference's
    minus `margin` (`epochs_to_train_accuracy`, the median too), of equals the one with the highest
    at that epoch, or the last one. No seed of it diverged.

    `same_split`: the cell has the GPUs and the batch on each that the convergence was measured
    with. `seconds` are the epochs times the cell's seconds per epoch; `reference_seconds` those of
    the `best` remedy at the reference batch on one GPU, recipe and strategy being the same,
    `plain_reference_seconds` those of the reference itself; `speedup` and `plain_speedup` are the
    ratios, 0 where the accuracy is never reached, and `epoch_speedup` what an epoch alone would
    promise. A global batch that no timed cell has keeps one row without times. Empty without a
    reference.
    """
    reference = runs[runs["reference"] & runs["chosen"].eq(True)]
    if reference.empty:
        return pd.DataFrame(columns=COLUMNS)
    targets = {split: reference[f"{split}_accuracy"].mean() - margin for split in ("train", "test")}
    chosen = epochs[epochs["chosen"].eq(True)]
    needed = [
        _needed(remedy, batch, group, targets)
        for (remedy, batch), group in chosen.groupby(_PLACE, sort=False)
    ]
    found = pd.DataFrame(needed).merge(remedies(runs, margin), on=_PLACE, suffixes=("", "_table"))
    at_best = {batch: _best(rows) for batch, rows in found.groupby("global_batch")}
    plain = next(reference.itertuples())
    base = {
        name: next((row for row in needed if _place(row) == (remedy, plain.global_batch)), None)
        for name, remedy in (
            ("reference", at_best[plain.global_batch]),
            ("plain_reference", plain.remedy),
        )
    }
    split = runs.drop_duplicates(_PLACE).set_index(_PLACE)["gpus"]
    cells = timing[timing["epoch_seconds"].notna()]
    rows = []
    for row in needed:
        row["best"] = at_best[row["global_batch"]] == row["remedy"]
        at = cells[cells["gpus"] * cells["batch_size"] == row["global_batch"]]
        timed = [_timed(row, cell, split.loc[_place(row)], base, cells) for cell in at.itertuples()]
        rows += timed or [row]
    return pd.DataFrame(rows, columns=COLUMNS)


def _place(row: dict[str, Any]) -> tuple[str, int]:
    return row["remedy"], row["global_batch"]


def _needed(
    remedy: str, global_batch: int, epochs: pd.DataFrame, targets: dict[str, float]
) -> dict[str, Any]:
    test, train = (_counts(epochs, split, targets[split]) for split in ("test", "train"))
    to_train = _median(train["epoch"])
    return {
        "remedy": remedy,
        "global_batch": global_batch,
        "target_accuracy": targets["test"],
        "seeds": len(test),
        "reached": int((test["epoch"] < math.inf).sum()),
        "epochs_to_accuracy": _median(test["epoch"]),
        "epochs_to_accuracy_min": test["epoch"].min(),
        "epochs_to_accuracy_max": test["epoch"].max(),
        "updates_to_accuracy": _median(test["updates"]),
        "epochs_to_train_accuracy": to_train,
        "train_accuracy_then": epochs.loc[
            epochs["epoch"] == min(to_train, epochs["epoch"].max()), "train_accuracy"
        ].mean(),
    }


def _counts(epochs: pd.DataFrame, split: str, target: float) -> pd.DataFrame:
    """Epoch and updates at which each seed's accuracy first is the target's; or infinity."""
    found = []
    for _, run in epochs.groupby("seed"):
        reached = run[run[f"{split}_accuracy"] >= target].sort_values("epoch").head(1)
        figures = reached[["epoch", "updates"]].astype(float).values.tolist()
        found.append(tuple(figures[0]) if figures else (math.inf, math.inf))
    return pd.DataFrame(found, columns=["epoch", "updates"])


def _median(values: pd.Series) -> float:
    """The middle value, of an even number the higher of the two: nothing between 3 and infinity."""
    return float(values.sort_values().iloc[len(values) // 2])


def _best(rows: pd.DataFrame) -> str | None:
    """The remedy that training accuracy chooses at a global batch; None where all diverged."""
    rows = rows[(rows["diverged_seeds"] == 0) & rows["train_accuracy_then"].notna()]
    if rows.empty:
        return None
    order = rows.sort_values(
        ["epochs_to_train_accuracy", "train_accuracy_then"], ascending=[True, False], kind="stable"
    )
    return str(evaluated_best(rows, next(order.itertuples())).remedy)


def _timed(
    row: dict[str, Any],
    cell: Any,
    gpus: float,
    base: dict[str, dict[str, Any] | None],
    cells: pd.DataFrame,
) -> dict[str, Any]:
    """`row` with the times of one cell, beside those of the rows of `base`, by their names."""
    plain = base["plain_reference"]
    assert plain is not None
    single = cells[
        (cells["recipe"] == cell.recipe)
        & (cells["strategy"] == cell.strategy)
        & (cells["gpus"] == 1)
        & (cells["batch_size"] == plain["global_batch"])
    ]["epoch_seconds"]
    epoch_seconds = float(single.iloc[0]) if len(single) else math.nan
    seconds = row["epochs_to_accuracy"] * cell.epoch_seconds
    others = {
        name: (other["epochs_to_accuracy"] if other else math.nan) * epoch_seconds
        for name, other in base.items()
    }
    return {
        **row,
        **{key: getattr(cell, key) for key in _CELL},
        "same_split": cell.gpus == gpus,
        "epoch_seconds": cell.epoch_seconds,
        "epoch_speedup": epoch_seconds / cell.epoch_seconds,
        "seconds": seconds,
        **{f"{name}_seconds": value for name, value in others.items()},
        "speedup": others["reference"] / seconds,
        "plain_speedup": others["plain_reference"] / seconds,
    }
