"""A published study's times as a timing table, from which everything else is derived as usual."""

import math
from typing import Any

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.published.study import PublishedStudy
from scaling.tables import schema
from scaling.tables.timing import TIMED

CIFAR10_TRAIN_IMAGES = 50_000


def published_timing(study: PublishedStudy, train_images: int) -> pd.DataFrame:
    """The table of seconds per epoch, of a training set's D images.

    `recipe` is the model's name. A time without `count` was measured once. Iterations are
    ceil(D / (N·b)), as no study says that it drops the last partial batch. A batch size that only
    the study's sweep has becomes a cell of each strategy; where both have it, the time is that of
    the rows, which the document derives from (see the audit for the other).
    """
    cells = study.rows.assign(recipe=study.model)
    for strategy in study.strategies:
        known = cells.loc[(cells["strategy"] == strategy) & (cells["gpus"] == 1), "batch_size"]
        more = study.sweep[~study.sweep["batch_size"].isin(known)].dropna(subset="epoch_seconds")
        more = more.assign(recipe=study.model, strategy=strategy, status="ok")
        if not more.empty:
            cells = pd.concat([cells, more], ignore_index=True)
    rows = [_row(cell, train_images) for cell in cells.itertuples()]
    return schema.arrange("timing", rows)


def _row(cell: Any, train_images: int) -> dict[str, Any]:
    row = {key: getattr(cell, key) for key in [*CELL_KEYS, "status"]} | {"message": ""}
    if cell.status not in TIMED:
        return row
    count = 1 if pd.isna(cell.count) else cell.count
    once = {"min": cell.epoch_seconds, "max": cell.epoch_seconds} if count == 1 else {}
    without = float(cell.epoch_seconds_without_loading)
    return row | {
        "epoch_seconds": cell.epoch_seconds,
        "epoch_seconds_without_loading": without,
        "loader_seconds": cell.epoch_seconds - without,
        "epoch_seconds_min": once.get("min", cell.epoch_seconds_min),
        "epoch_seconds_max": once.get("max", cell.epoch_seconds_max),
        "epoch_seconds_without_loading_min": without if once else math.nan,
        "epoch_seconds_without_loading_max": without if once else math.nan,
        "count": count,
        "iterations": math.ceil(train_images / (cell.gpus * cell.batch_size)),
        "samples": train_images,
    }
