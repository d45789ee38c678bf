"""Draw studies side by side: time, speedup, efficiency and bandwidth over the batch size."""

import argparse
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scaling.core.errors import run_script
from scaling.figures import style as figures
from scaling.tables import comparison, io

METRICS = {
    "epoch_seconds": "seconds per epoch",
    "speedup": "speedup",
    "efficiency": "efficiency",
    "bandwidth_gb_per_s": "GB/s",
}
RATIOS = {"speedup": lambda gpus: gpus, "efficiency": lambda gpus: 1}
"""The metrics that are ratios, and the ideal of each."""


def draw(table: pd.DataFrame, largest_batch: int) -> Figure:
    """A column of panels for each of two numbers of GPUs, a row with one scale for each metric.

    The numbers are the largest two on which a study has a time. Batch sizes above `largest_batch`
    (the training set: no such batch can be drawn) are left out.
    """
    table = table[(table["batch_size"] <= largest_batch) & (table["gpus"] > 1)]
    timed = table.dropna(subset="epoch_seconds")
    counts = sorted({int(gpus) for gpus in timed["gpus"]})[-2:]
    if not counts:
        return figures.message_figure("No study has a time on several GPUs.")
    lines = list(table.groupby(["study", "recipe", "strategy"], sort=False))
    styles = [_style(index) for index in range(len(lines))]
    places = [(metric, gpus) for metric in METRICS for gpus in counts]
    figure, panels, _ = figures.panels(
        [f"{figures.gpu_label(gpus)} · {METRICS[metric]}" for metric, gpus in places]
    )
    shown = timed[timed["gpus"].isin(counts)]
    batches = sorted({int(size) for size in shown["batch_size"]})
    for axes, (metric, gpus) in zip(panels, places, strict=True):
        for (_, cells), style in zip(lines, styles, strict=True):
            known = cells[(cells["gpus"] == gpus) & cells[metric].notna()].sort_values("batch_size")
            axes.plot(known["batch_size"], known[metric], **style)
        figures.log2_axis(axes.xaxis, batches)
        axes.set_xlim(batches[0] / 1.6, batches[-1] * 1.6)
        _scale(axes, metric, gpus, counts[-1], shown[metric].dropna())
    for axes in panels[-len(counts) :]:
        axes.set_xlabel("batch size per GPU")
    handles = [
        figures.line_handle(" · ".join(dict.fromkeys(map(str, key))), **style)
        for (key, _), style in zip(lines, styles, strict=True)
    ]
    figures.legend(figure, handles, longest_row=2)
    return figure


def _style(index: int) -> dict[str, Any]:
    colours, markers = figures.GPU_COLOURS, figures.MARKERS
    return {
        "color": colours[index % len(colours)],
        "marker": markers[index % len(markers)],
        "linestyle": figures.LINE_STYLES[index // len(colours) % len(figures.LINE_STYLES)],
    }


def _scale(axes: Axes, metric: str, gpus: int, most: int, values: pd.Series) -> None:
    """The y axis: logarithmic for times and rates, from 0 with the ideal for ratios.

    `most` is the largest number of GPUs and `values` are those of all panels of the metric.
    """
    if metric in RATIOS:
        ideal = RATIOS[metric](gpus)
        axes.axhline(ideal, color=figures.GREY, linestyle="--", linewidth=1, zorder=1)
        axes.set_ylim(0, 1.1 * max(RATIOS[metric](most), values.max() if len(values) else 0))
    elif len(values):
        figures.log2_axis(axes.yaxis, [2.0**power for power in range(-12, 16)])
        axes.set_ylim(values.min() / 1.25, values.max() * 1.25)


def main(argv: list[str] | None = None) -> None:
    """Write the figure as SVG."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comparison", type=Path, required=True, help="comparison.csv")
    parser.add_argument(
        "--largest-batch", type=int, required=True, help="images in the training set"
    )
    parser.add_argument("--output", type=Path, required=True, help="the SVG file to write")
    args = parser.parse_args(argv)
    table = io.read(args.comparison, comparison.COLUMNS)
    with figures.style("comparison"):
        figures.save(draw(table, args.largest_batch), args.output)


if __name__ == "__main__":
    run_script(main)
