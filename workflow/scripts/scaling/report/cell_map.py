"""The map of cells with their metrics, and bars of the parts of their epochs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from scaling.claims.claim import label
from scaling.claims.q3 import PARTS
from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.report.frames import drifting, shown_once
from scaling.report.quantities import printed
from scaling.report.table import figure, of_cell, place
from scaling.tables.schema import rows_of

APART = "trained apart"
"""The status of a cell that is recommended for its trainings, and is none of the grid."""
DRIFTS = "changing"
"""The mark of a cell whose epochs still became longer or shorter at the end of a run."""


@dataclass(frozen=True)
class Metric:
    """A metric of the map, the column that has it, and how its colour follows from it."""

    name: str
    label: str
    column: str
    write: Callable[[float], str]
    higher_is_better: bool = True
    logarithmic: bool = False


METRICS = [
    Metric("seconds", "seconds per epoch", "epoch_seconds", fmt.significant, False, True),
    Metric("images", "images/s", "images_per_second", fmt.significant, True, True),
    Metric("efficiency", "efficiency", "efficiency", fmt.percent),
    Metric("waiting", "waiting for data", "loading_share", fmt.percent, False),
    Metric("communication", "exposed communication", "communication_share", fmt.part, False),
    Metric("peak", "share of peak", "utilization", fmt.percent),
    Metric("accuracy", "test accuracy", "test_accuracy", fmt.percent),
    Metric("memory", "peak memory", "peak_memory_bytes", fmt.data, False, True),
    Metric("gpu_seconds", "GPU-seconds", "gpu_seconds", fmt.significant, False, True),
    Metric("joules", "joules an image", "joules_per_image", fmt.significant, False, True),
    Metric("money", "money an epoch", "money_per_epoch", fmt.significant, False, True),
]


def metrics(cells: pd.DataFrame) -> list[Metric]:
    """Return those of `METRICS` that a cell has; accuracies say after how many epochs they are."""
    known = [one for one in METRICS if one.column in cells and cells[one.column].notna().any()]
    epochs = set(cells["epoch"].dropna()) if "epoch" in cells else set()
    after = f" after {fmt.plural(int(max(epochs)), 'epoch')}" if len(epochs) == 1 else ""
    return [replace(one, label=one.label + after * (one.name == "accuracy")) for one in known]


def cell_id(row: Any) -> str:
    """Return the anchor of a cell: `cell-tuned-ddp-2-512`."""
    return f"cell-{'-'.join(place(row).values())}"


def map_rows(
    cells: pd.DataFrame, marks: Mapping[str, Any]
) -> list[tuple[str, dict[int, dict[str, Any]]]]:
    """Return the rows of the map: a configuration, with its cells by batch size.

    A cell has its link, its `marks` and `DRIFTS`, and for each metric a figure and a rating. What
    is marked and none of `cells` is added.
    """
    alone = shown_once(cells)
    shared = len(alone) < len(cells)
    for row in marks.values():
        if place(row) not in map(place, rows_of(alone)):
            added = {key: getattr(row, key) for key in CELL_KEYS} | {"status": APART}
            alone = pd.concat([alone, pd.DataFrame([added])])
    alone = alone.reset_index(drop=True)
    drifts, shown = set(drifting(alone).index), metrics(cells)
    ratings = {metric: _goodness(alone[metric.column], metric) for metric in shown}
    rows = []
    configurations: Any = alone.groupby(["recipe", "gpus", "strategy"], sort=True)
    for (recipe, gpus, strategy), own in configurations:
        found = {}
        for row in rows_of(own):
            values = {}
            for metric in shown:
                if pd.notna(value := getattr(row, metric.column)):
                    text = figure(metric.write(value), row, metric.column, value)
                    values[metric.name] = (text, ratings[metric][row.Index])
            names = [name for name, of in marks.items() if place(of) == place(row)]
            found[int(row.batch_size)] = {
                "id": "trained-to-accuracy" if row.status == APART else cell_id(row),
                "cell": of_cell(row),
                "title": f"{label(row)}: {_detail(row)}",
                "status": fmt.words(row.status),
                "values": values,
                "marks": [*names, *[DRIFTS] * (row.Index in drifts)],
            }
        single = gpus == 1 and shared
        name = f"{recipe} · one GPU" if single else f"{recipe} · {strategy} · {fmt.gpus(gpus)}"
        rows.append((name, found))
    return rows


def _detail(row: Any) -> str:
    if pd.isna(row.epoch_seconds):
        return fmt.words(row.status)
    low, high, count = row.epoch_seconds_min, row.epoch_seconds_max, row.count
    between = fmt.span(row.epoch_seconds_run_min, row.epoch_seconds_run_max)
    runs = f", {between} s over {row.runs:g} runs" if row.runs > 1 else ""
    return f"{fmt.span(low, high)} s over {fmt.plural(count, 'epoch')}{runs}"


def _goodness(values: pd.Series, metric: Metric) -> pd.Series:
    """Return each cell's rating from 0 (worst of the study) to 1 (best), 0.5 if all are equal."""
    values = values.astype(float)
    scaled: Any = np.log(values.where(values > 0)) if metric.logarithmic else values
    share = (scaled - scaled.min()) / (scaled.max() - scaled.min())
    return (share if metric.higher_is_better else 1 - share).fillna(0.5).round(2)


def bars(cells: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the parts of each timed cell's epoch, as figures of their widths in percent.

    `detail` has the epoch's range and the parts in words.
    """
    made = []
    timed = shown_once(cells[(cells["status"] == "ok") & cells["utilization"].notna()])
    for row in rows_of(timed):
        shares = {part: getattr(row, part) for part in PARTS}
        widths = {part: max(0.0, np.nan_to_num(share)) for part, share in shares.items()}
        texts = [f"{fmt.percent(width)} {PARTS[part]}" for part, width in widths.items()]
        made.append(
            {
                "id": cell_id(row),
                "name": label(row),
                "parts": [
                    figure(f"{100 * widths[part]:.2f}", row, part, share)
                    for part, share in shares.items()
                ],
                "seconds": printed(row, "epoch_seconds", fmt.seconds),
                "detail": f"{_detail(row)}: {', '.join(texts)}",
            }
        )
    return made
