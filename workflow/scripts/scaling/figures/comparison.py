"""Compare studies: time, speedup, efficiency and bandwidth over the batch size."""

import pandas as pd
from matplotlib.figure import Figure

from scaling.core import numbers as fmt
from scaling.figures import style

METRICS = {
    "epoch_seconds": "seconds per epoch",
    "speedup": "speedup",
    "efficiency": "efficiency",
    "bandwidth_gb_per_s": "GB/s",
}
RATIOS = {"speedup": lambda gpus: gpus, "efficiency": lambda gpus: 1}
"""Metrics that are ratios, with their ideal values."""


def draw_comparison(comparison: pd.DataFrame) -> Figure | None:
    """Draw a column of panels for each of two GPU counts, and a row for each metric.

    The GPU counts are the two largest with a time in any study. Batches larger than the training
    set are left out. Rows share their scale.
    """
    table = comparison[~(comparison["batch_size"] > comparison["samples"])]
    table = table[table["gpus"] > 1].copy()
    timed = table.dropna(subset="epoch_seconds")
    counts = sorted({int(gpus) for gpus in timed["gpus"]})[-2:]
    if not counts:
        return None
    keys = zip(table["study"], table["recipe"], table["strategy"], strict=True)
    table["name"] = [" · ".join(dict.fromkeys(map(str, key))) for key in keys]
    groups = table.groupby("name", sort=False)
    studies = {str(name): rows.sort_values("batch_size") for name, rows in groups}
    places = [(metric, gpus) for metric in METRICS for gpus in counts]
    titles = [f"{fmt.gpus(gpus)} · {METRICS[metric]}" for metric, gpus in places]
    figure, panels = style.panels(titles, "batch size per GPU")
    shown = timed[timed["gpus"].isin(counts)]
    batches = sorted({int(size) for size in shown["batch_size"]})
    for axes, (metric, gpus) in zip(panels, places, strict=True):
        cells = [rows[(rows["gpus"] == gpus) & rows[metric].notna()] for rows in studies.values()]
        style.lines(axes, cells, "batch_size", metric, "comparison")
        style.batch_axis(axes, batches)
        values = shown[metric].dropna()
        if metric in RATIOS:
            highest = max(RATIOS[metric](counts[-1]), values.max() if len(values) else 0)
            axes.axhline(RATIOS[metric](gpus), **style.IDEAL)
            axes.set_ylim(0, 1.1 * highest)
        elif len(values):
            style.log2_axis(axes.yaxis, style.POWERS)
            axes.set_ylim(values.min() / 1.25, values.max() * 1.25)
    style.legend(figure, studies)
    return figure
