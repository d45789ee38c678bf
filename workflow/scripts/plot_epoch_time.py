"""Draw the epoch time over the batch size, one line for each number of GPUs."""

import argparse
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scaling.core.errors import run_script
from scaling.figures import style as figures
from scaling.tables import schema

LOG_FROM_RATIO = 8


def draw(timing: pd.DataFrame) -> Figure:
    """One panel for each recipe and strategy; a cell that is not ok is named below its panel."""
    groups = schema.by_configuration(timing)
    if not groups:
        return figures.message_figure("The study has no cells.")
    batches = sorted({int(size) for size in timing["batch_size"]})
    counts = sorted({int(gpus) for gpus in timing["gpus"]})
    styles = figures.gpu_styles(counts)
    troubled = timing[timing["status"] != "ok"]
    strip = [gpus for gpus in counts if gpus in set(troubled["gpus"])]
    figure, panels, bottoms = figures.panels(
        [f"{recipe} · {strategy}" for recipe, strategy, _ in groups],
        strip_rows=len(strip),
        width=max(figures.PANEL_INCHES[0], 0.68 * len(batches) + 0.5),
    )
    for axes, bottom, (_, _, rows) in zip(panels, bottoms, groups, strict=True):
        for index, gpus in enumerate(counts):
            cells = rows[rows["gpus"] == gpus].sort_values("batch_size")
            x = figures.beside(cells["batch_size"], index, len(counts), step=1.06)
            _draw_line(axes, cells.assign(x=x), styles[gpus])
        figures.log2_axis(axes.xaxis, batches)
        axes.set_xlim(batches[0] / 1.6, batches[-1] * 1.6)
        marks = [
            figures.Mark(
                cell.batch_size, strip.index(cell.gpus), cell.status, styles[cell.gpus]["color"]
            )
            for cell in rows[rows["status"] != "ok"].itertuples()
        ]
        figures.draw_marks(bottom, marks, [figures.gpu_label(gpus) for gpus in strip])
        bottom.set_xlabel("batch size per GPU")
    _scale(panels, timing)
    for axes in panels[::2]:
        axes.set_ylabel("seconds per epoch")
    handles = [figures.line_handle(figures.gpu_label(gpus), **styles[gpus]) for gpus in counts]
    if (timing["epoch_seconds"].notna() & (timing["status"] != "ok")).any():
        not_ok = figures.open_marker({"color": figures.INK, "marker": "o"})
        handles.append(figures.line_handle("timed, but not ok", **not_ok))
    figures.legend(figure, handles)
    return figure


def _draw_line(axes: Axes, cells: pd.DataFrame, style: dict[str, Any]) -> None:
    timed = cells[cells["epoch_seconds"].notna()]
    below = timed["epoch_seconds"] - timed["epoch_seconds_min"]
    above = timed["epoch_seconds_max"] - timed["epoch_seconds"]
    axes.errorbar(timed["x"], timed["epoch_seconds"], yerr=[below, above], **style)
    doubtful = timed[timed["status"] != "ok"]
    axes.plot(doubtful["x"], doubtful["epoch_seconds"], zorder=3, **figures.open_marker(style))


def _scale(panels: list[Axes], timing: pd.DataFrame) -> None:
    """One y range for all panels, logarithmic where the times span more than LOG_FROM_RATIO."""
    lowest, highest = timing["epoch_seconds_min"].min(), timing["epoch_seconds_max"].max()
    for axes in panels:
        if highest > LOG_FROM_RATIO * lowest:
            ticks = [2.0**power for power in range(-10, 16)]
            figures.log2_axis(axes.yaxis, ticks)
            axes.set_ylim(lowest / 1.25, highest * 1.25)
        else:
            axes.set_ylim(0, highest * 1.1 if highest > 0 else 1)


def main(argv: list[str] | None = None) -> None:
    """Write the figure as SVG."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--timing", type=Path, required=True, help="timing.csv of the study")
    parser.add_argument("--output", type=Path, required=True, help="the SVG file to write")
    arguments = parser.parse_args(argv)
    timing = schema.read("timing", arguments.timing)
    with figures.style("epoch_time"):
        figures.save(draw(timing), arguments.output)


if __name__ == "__main__":
    run_script(main)
