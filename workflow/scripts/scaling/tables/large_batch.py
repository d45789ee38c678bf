"""Loss and accuracy after equal epochs: every cell against a small batch on one GPU."""

import math
from typing import Any

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.tables.noise import ranges_overlap

REFERENCE_BATCH = 128
EPOCH = 5
QUANTITIES = ["train_loss", "train_accuracy", "test_loss", "test_accuracy"]
CONFIGURATION = ["recipe", "strategy"]


def compare(timing: pd.DataFrame, accuracy: pd.DataFrame) -> pd.DataFrame:
    """One row per cell of `timing`: its seeds' figures, and how far it is from the reference.

    The training figures are those of epoch 5, or of the last one where a recipe has fewer; the test
    figures those after the last epoch. For each of `QUANTITIES` the mean over the seeds, and
    `…_min`, `…_max`. `epoch`, `seeds` (those with figures), `global_batch_size`, `reference` (the
    cell is it). `difference` is in the mean accuracy, as a fraction, test accuracy where both
    cells have one, else training accuracy (`difference_of` says which); `within_spread` whether
    the seeds' ranges overlap, None with fewer than 2 seeds. Empty where there are no figures.

    The reference of a recipe and strategy is batch 128 on 1 GPU if the grid has it, else the
    smallest batch on 1 GPU.
    """
    rows = []
    for _, cells in timing.groupby(CONFIGURATION, sort=False):
        own = accuracy.merge(cells[CONFIGURATION].drop_duplicates(), on=CONFIGURATION)
        epoch = min(EPOCH, own["epoch"].max())
        figures = [_figures(cell, own, epoch) for cell in cells.itertuples()]
        reference = _reference(figures)
        rows += [{**row, **_against(row, reference)} for row in figures]
    return pd.DataFrame(rows)


def _figures(cell: Any, accuracy: pd.DataFrame, epoch: float) -> dict[str, Any]:
    runs = accuracy[(accuracy["gpus"] == cell.gpus) & (accuracy["batch_size"] == cell.batch_size)]
    row: dict[str, Any] = {key: getattr(cell, key) for key in [*CELL_KEYS, "status"]}
    row |= {"global_batch_size": cell.gpus * cell.batch_size, "epoch": epoch}
    for quantity in QUANTITIES:
        training = quantity.startswith("train")
        values = (runs[runs["epoch"] == epoch] if training else runs)[quantity].dropna()
        row |= {quantity: values.mean(), f"{quantity}_min": values.min()}
        row |= {f"{quantity}_max": values.max(), f"{quantity}_count": len(values)}
    return {**row, "seeds": max(row["train_accuracy_count"], row["test_accuracy_count"])}


def _reference(cells: list[dict[str, Any]]) -> dict[str, Any] | None:
    single = sorted(
        (cell for cell in cells if cell["gpus"] == 1),
        key=lambda cell: (cell["batch_size"] != REFERENCE_BATCH, cell["batch_size"]),
    )
    return single[0] if single else None


def _against(row: dict[str, Any], reference: dict[str, Any] | None) -> dict[str, Any]:
    """What `compare` says about one cell and the reference."""
    unknown = {"difference": math.nan, "difference_of": "", "within_spread": None}
    if reference is None or row is reference:
        return {"reference": row is reference, **unknown}
    for quantity in ("test_accuracy", "train_accuracy"):
        seeds = min(row[f"{quantity}_count"], reference[f"{quantity}_count"])
        if seeds == 0:
            continue
        low, high = f"{quantity}_min", f"{quantity}_max"
        overlap = ranges_overlap(row[low], row[high], reference[low], reference[high])
        return {
            "reference": False,
            "difference": row[quantity] - reference[quantity],
            "difference_of": quantity,
            "within_spread": overlap if seeds > 1 else None,
        }
    return {"reference": False, **unknown}
