"""Loss and accuracy of every run, epoch by epoch."""

import math
from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from operator import itemgetter
from statistics import fmean
from typing import Any, Literal

import pandas as pd

from scaling.core.records import EpochRow, RunRecord
from scaling.tables import io, schema
from scaling.tables.runs import Run

COLUMNS = schema.columns("accuracy")


def accuracy(runs: list[Run], study: str) -> pd.DataFrame:
    """One row per run and training epoch (from 1, warm-up included), columns `COLUMNS`.

    Training figures are means over ranks, weighted by samples; test figures stand in the last
    epoch's row only. Instrumented epochs are left out: they run to be measured, some of them
    without gradient synchronisation. Accuracies are fractions (1.0 = all right), empty when the
    run diverged. A run without epochs (out of memory, missing, …) keeps one row, without epoch.
    """
    rows = []
    for cell, record in runs:
        status = record["status"] if record else "missing"
        epochs = list(_epochs(record)) if record else []
        rows += [
            {"study": study, **asdict(cell), "status": status, **epoch} for epoch in epochs or [{}]
        ]
    return io.arrange(pd.DataFrame(rows, columns=COLUMNS), COLUMNS)


def _epochs(record: RunRecord) -> Iterator[dict[str, Any]]:
    training = [row for row in record["epochs"] if row["role"] != "instrumented"]
    last = max((row["epoch"] for row in training), default=None)
    for epoch, group in groupby(sorted(training, key=itemgetter("epoch")), itemgetter("epoch")):
        ranks = list(group)
        row = {
            "epoch": epoch,
            "train_loss": _mean(ranks, "train_loss"),
            "train_accuracy": _mean(ranks, "train_accuracy"),
            **((record["evaluation"] or {}) if epoch == last else {}),
        }
        if record["status"] == "diverged":
            row |= {"train_accuracy": math.nan, "test_accuracy": math.nan}
        yield row


def _mean(ranks: list[EpochRow], field: Literal["train_loss", "train_accuracy"]) -> float:
    values = [rank[field] for rank in ranks]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return math.nan
    return fmean(known, weights=[rank["samples"] for rank in ranks])
