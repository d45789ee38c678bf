"""Trainings to an accuracy: time, energy, and how they scale with GPUs."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.core.records.run import RunRecord
from scaling.core.statistics import difference
from scaling.tables import schema
from scaling.tables.runs import in_words
from scaling.tables.timing import epochs, joules

SPREAD = ["test_accuracy", "training_seconds", "run_seconds", "joules"]


def trained_to_accuracy(records: Sequence[RunRecord], accuracy: float) -> pd.DataFrame:
    """Return one row per cell: medians over its trainings towards a test `accuracy`, and ends.

    `training_seconds` are all epochs, each as long as its slowest rank's; `run_seconds` the whole
    command with start-up, evaluation and shutdown; `joules` of all GPUs over these epochs, empty if
    incomplete. `reached` of its `seeds` achieved the accuracy. `speedup` is in training seconds,
    relative to the fewest GPUs, with the 95 % interval of the ratio of geometric means
    (`difference` of logarithms), which needs 2 seeds.
    """
    trainings = pd.DataFrame([_training(record, accuracy) for record in records])
    rows, base = [], None
    for _, runs in trainings.groupby(CELL_KEYS):
        row = dict(runs.iloc[0]) | {"seeds": len(runs), "reached": int(runs["reached"].sum())}
        for end, how in (("", "median"), ("_min", "min"), ("_max", "max")):
            row |= dict(runs[SPREAD].agg(how).add_suffix(end))
        logs = np.log(runs["training_seconds"])
        if base is not None:
            found = difference(logs.tolist(), base.tolist())
            ends = {"": found.mean, "_low": found.low, "_high": found.high}
            row |= {f"speedup{name}": math.exp(end) for name, end in ends.items()}
        base = logs if base is None else base
        rows.append(row)
    return schema.frame("trained_to_accuracy", rows)


def _training(record: RunRecord, accuracy: float) -> dict[str, object]:
    cell, trained = record["cell"], epochs([record], "warmup", "measured")
    test = (record["evaluation"] or {}).get("test_accuracy", math.nan)
    return {
        **cell,
        "global_batch": cell["gpus"] * cell["batch_size"],
        "target_accuracy": accuracy,
        "epochs": len(trained),
        "test_accuracy": test,
        "reached": record["status"] == "ok" and test >= accuracy,
        "training_seconds": trained["seconds"].sum(),
        "run_seconds": record["run_seconds"],
        "joules": joules([record], "warmup", "measured"),
        "recipe_options": in_words(record["training"])["recipe_options"],
    }
