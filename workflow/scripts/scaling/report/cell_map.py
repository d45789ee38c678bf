"""The map of cells with their metrics, and bars of the parts of their epochs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from scaling.claims.phrases import label
from scaling.claims.q3_1 import PARTS
from scaling.core import numbers as fmt
from scaling.report import frames
from scaling.report.frames import fastest
from scaling.tables.schema import rows_of


@dataclass(frozen=True)
class Metric:
    """A metric of the map; `colour` maps its value, or its logarithm, to a colour."""

    name: str
    label: str
    column: str
    write: Callable[[float], str]
    higher_is_better: bool = True
    logarithmic: bool = False


METRICS = [
    Metric("seconds", "seconds per epoch", "epoch_seconds", fmt.significant, False, True),
    Metric("efficiency", "efficiency", "efficiency", fmt.percent),
    Metric("waiting", "waiting for data", "loading_share", fmt.percent, False),
    Metric("communication", "exposed communication", "communication_share", fmt.part, False),
    Metric("peak", "share of peak", "utilization", fmt.percent),
    Metric("accuracy", "test accuracy", "test_accuracy", fmt.percent),
    Metric("memory", "peak memory", "peak_memory_bytes", fmt.data, False, True),
]


def cell_id(row: Any) -> str:
    """Return the anchor of a cell: `cell-tuned-ddp-2-512`."""
    return f"cell-{row.recipe}-{row.strategy}-{int(row.gpus)}-{int(row.batch_size)}"


def map_rows(
    cells: pd.DataFrame, chosen: Any | None = None
) -> list[tuple[str, list[dict[str, Any] | None]]]:
    """Return the rows of the map: a configuration, with its cell at each batch size or None.

    A cell has its position, its marks, and for each metric a text and a rating. The `chosen` one
    is marked as recommended.
    """
    marks = [("recommended", chosen), ("fastest", fastest(cells))]
    shown = {
        metric: _goodness(cells[metric.column], metric)
        for metric in METRICS
        if metric.column in cells
    }
    rows = []
    alone = frames.shown_once(cells)
    shared = len(alone) < len(cells)
    sizes = sorted(cells["batch_size"].unique())
    configurations: Any = alone.groupby(["recipe", "gpus", "strategy"], sort=True)
    for (recipe, gpus, strategy), own in configurations:
        found = {
            row.batch_size: {
                "id": cell_id(row),
                "name": label(row),
                "status": fmt.words(row.status),
                "detail": _detail(row),
                "values": {
                    metric.name: (metric.write(value), goodness[row.Index])
                    for metric, goodness in shown.items()
                    if pd.notna(value := getattr(row, metric.column))
                },
                "marks": [name for name, cell in marks if cell and cell.Index == row.Index],
            }
            for row in rows_of(own)
        }
        single = gpus == 1 and shared
        name = f"{recipe} · one GPU" if single else f"{recipe} · {strategy} · {fmt.gpus(gpus)}"
        rows.append((name, [found.get(size) for size in sizes]))
    return rows


def _detail(row: Any) -> str:
    if pd.isna(row.epoch_seconds):
        return fmt.words(row.status)
    low, high, count = row.epoch_seconds_min, row.epoch_seconds_max, row.count
    said = f"{fmt.span(low, high)} s over {fmt.plural(count, 'epoch')}"
    if row.runs > 1:
        said += f", {fmt.span(row.epoch_seconds_run_min, row.epoch_seconds_run_max)} s over "
        said += fmt.plural(row.runs, "run")
    return said


def _goodness(values: pd.Series, metric: Metric) -> pd.Series:
    """Return each cell's rating from 0 (worst of the study) to 1 (best), 0.5 if all are equal."""
    values = values.astype(float)
    scaled: Any = np.log(values.where(values > 0)) if metric.logarithmic else values
    share = (scaled - scaled.min()) / (scaled.max() - scaled.min())
    return (share if metric.higher_is_better else 1 - share).fillna(0.5).round(2)


def bars(cells: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the parts of each timed cell's epoch in percent, in order.

    `detail` has the epoch's range and the parts in words.
    """
    made = []
    for row in rows_of(frames.shown_once(cells[cells["status"] == "ok"])):
        parts = [round(100 * max(0.0, np.nan_to_num(getattr(row, part))), 2) for part in PARTS]
        if pd.notna(row.utilization):
            named = zip(parts, PARTS.values(), strict=True)
            texts = [f"{fmt.percent(share / 100)} {name}" for share, name in named]
            made.append(
                {
                    "id": cell_id(row),
                    "name": label(row),
                    "parts": parts,
                    "seconds": fmt.seconds(row.epoch_seconds),
                    "detail": f"{_detail(row)}: {', '.join(texts)}",
                }
            )
    return made
