"""How long it takes to a fixed test accuracy, in epochs, in updates, and by the timing table."""

import math
from typing import Any

import pandas as pd

COLUMNS = [
    *("remedy", "global_batch", "target_accuracy", "seeds", "reached"),
    *("epochs_to_accuracy", "epochs_to_accuracy_min", "epochs_to_accuracy_max"),
    *("updates_to_accuracy", "recipe", "strategy", "gpus", "batch_size", "same_split"),
    *("epoch_seconds", "epoch_speedup", "seconds", "reference_seconds", "speedup"),
]
_CELL = ["recipe", "strategy", "gpus", "batch_size"]


def time_to_accuracy(
    runs: pd.DataFrame, epochs: pd.DataFrame, timing: pd.DataFrame, margin: float
) -> pd.DataFrame:
    """One row per remedy, global batch and timed cell with that global batch, columns `COLUMNS`.

    The target is the reference's mean test accuracy after its last epoch, minus `margin`. A seed
    needs the epochs until its test accuracy first is as high, infinitely many if it never is; of
    them the median over the seeds of the chosen rate, and `…_min`, `…_max`. `same_split`: the cell
    has the GPUs and the batch on each that the convergence was measured with. `seconds` are those
    epochs times the cell's seconds per epoch; `reference_seconds` those of the reference on one
    GPU, recipe and strategy being the same; `speedup` is their ratio, 0 where the accuracy is never
    reached, and `epoch_speedup` what an epoch alone would promise. A global batch that no timed
    cell has keeps one row without times. Empty without a reference.
    """
    reference = runs[runs["reference"] & runs["chosen"].eq(True)]
    if reference.empty:
        return pd.DataFrame(columns=COLUMNS)
    target = reference["test_accuracy"].mean() - margin
    needed = [
        _needed(remedy, batch, group, target)
        for (remedy, batch), group in epochs[epochs["chosen"].eq(True)].groupby(
            ["remedy", "global_batch"], sort=False
        )
    ]
    name, size = reference.iloc[0]["remedy"], reference.iloc[0]["global_batch"]
    base = next(row for row in needed if (row["remedy"], row["global_batch"]) == (name, size))
    split = runs.drop_duplicates(["remedy", "global_batch"]).set_index(["remedy", "global_batch"])
    cells = timing[timing["epoch_seconds"].notna()]
    rows = []
    for row in needed:
        gpus = split.loc[(row["remedy"], row["global_batch"]), "gpus"]
        found = cells[cells["gpus"] * cells["batch_size"] == row["global_batch"]]
        timed = [_timed(row, cell, gpus, base, cells) for cell in found.itertuples()]
        rows += timed or [row]
    return pd.DataFrame(rows, columns=COLUMNS)


def _needed(remedy: str, global_batch: int, epochs: pd.DataFrame, target: float) -> dict[str, Any]:
    found = []
    for _, run in epochs.groupby("seed"):
        reached = run[run["test_accuracy"] >= target].sort_values("epoch").head(1)
        figures = reached[["epoch", "updates"]].astype(float).values.tolist()
        found.append(tuple(figures[0]) if figures else (math.inf, math.inf))
    counts = pd.DataFrame(found, columns=["epoch", "updates"])
    return {
        "remedy": remedy,
        "global_batch": global_batch,
        "target_accuracy": target,
        "seeds": len(counts),
        "reached": int((counts["epoch"] < math.inf).sum()),
        "epochs_to_accuracy": _median(counts["epoch"]),
        "epochs_to_accuracy_min": counts["epoch"].min(),
        "epochs_to_accuracy_max": counts["epoch"].max(),
        "updates_to_accuracy": _median(counts["updates"]),
    }


def _median(values: pd.Series) -> float:
    """The middle value, of an even number the higher of the two: nothing between 3 and infinity."""
    return float(values.sort_values().iloc[len(values) // 2])


def _timed(
    row: dict[str, Any], cell: Any, gpus: float, base: dict[str, Any], cells: pd.DataFrame
) -> dict[str, Any]:
    """`row` with the times of one cell."""
    single = cells[
        (cells["recipe"] == cell.recipe)
        & (cells["strategy"] == cell.strategy)
        & (cells["gpus"] == 1)
        & (cells["batch_size"] == base["global_batch"])
    ]["epoch_seconds"]
    epoch_seconds = float(single.iloc[0]) if len(single) else math.nan
    seconds = row["epochs_to_accuracy"] * cell.epoch_seconds
    reference_seconds = base["epochs_to_accuracy"] * epoch_seconds
    return {
        **row,
        **{key: getattr(cell, key) for key in _CELL},
        "same_split": cell.gpus == gpus,
        "epoch_seconds": cell.epoch_seconds,
        "epoch_speedup": epoch_seconds / cell.epoch_seconds,
        "seconds": seconds,
        "reference_seconds": reference_seconds,
        "speedup": reference_seconds / seconds,
    }
