"""Draw compute and communication of one epoch as stacked bars, for each batch size and GPUs."""

import argparse
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from scaling.core.errors import run_script
from scaling.figures import style
from scaling.tables import schema
from scaling.tables.communication import SUBTRACTIONS, with_values

GROUP_WIDTH = 0.84
UNDIVIDED = "#c4c4c4"
# The height of the words above a bar, in heights of a panel.
WORDS_SHARE = 0.36
TOPS = ["compute_seconds", "total_seconds"]
NEGATIVE: dict[str, Any] = {"facecolor": "white", "edgecolor": style.VERMILLION, "hatch": "////"}


def draw(communication: pd.DataFrame) -> Figure:
    """One panel for each recipe, strategy and estimate; a cell without a bar says why in its place.

    A negative communication hangs below zero, hatched; an epoch that cannot be divided for want of
    a single GPU's time or of a reading is a grey bar.
    """
    if communication.empty:
        return style.message_figure("The study has no cell on more than one GPU.")
    groups = [
        (f"{recipe} · {strategy}\n{estimate.replace('_', ' ')}", rows, _limits(of_both))
        for recipe, strategy, of_both in schema.by_configuration(with_values(communication))
        for estimate, rows in of_both.groupby("estimate", sort=False)
    ]
    batches = sorted({int(size) for size in communication["batch_size"]})
    counts = sorted({int(gpus) for gpus in communication["gpus"]})
    width = GROUP_WIDTH / len(counts)
    figure, panels, _ = style.panels(
        [title for title, _, _ in groups],
        width=max(style.PANEL_INCHES[0], 0.26 * len(batches) * len(counts) + 0.9),
    )
    for axes, (_, rows, limits) in zip(panels, groups, strict=True):
        offsets = (rows["gpus"].map(counts.index) - (len(counts) - 1) / 2) * width
        _draw_bars(axes, rows.assign(x=rows["batch_size"].map(batches.index) + offsets), width)
        _label(axes, batches, counts, width)
        axes.set_ylim(limits)
    for axes in panels[::2]:
        axes.set_ylabel("seconds per epoch")
    handles = [
        Patch(color=style.BLUE, label="compute"),
        Patch(color=style.VERMILLION, label="communication"),
    ]
    if (communication["communication_seconds"] < 0).any():
        handles.append(Patch(label="negative communication", **NEGATIVE))
    style.legend(figure, handles)
    return figure


def _draw_bars(axes: Axes, rows: pd.DataFrame, width: float) -> None:
    known = rows[rows["communication_seconds"].notna()]
    negative = known[known["communication_seconds"] < 0]
    positive = known[known["communication_seconds"] >= 0]
    bar = 0.9 * width
    axes.bar(known["x"], known["compute_seconds"], bar, color=style.BLUE)
    axes.bar(
        positive["x"],
        positive["communication_seconds"],
        bar,
        bottom=positive["compute_seconds"],
        color=style.VERMILLION,
    )
    axes.bar(negative["x"], negative["communication_seconds"], bar, **NEGATIVE)
    axes.axhline(0, color=style.GREY, linewidth=0.8)
    undivided = rows[rows["compute_seconds"].isna() & rows["total_seconds"].notna()]
    axes.bar(undivided["x"], undivided["total_seconds"], bar, color=UNDIVIDED)
    rows = rows.assign(top=rows[TOPS].max(axis=1))
    for cell in rows[_unusual(rows)].itertuples():
        lacking = "no 1-GPU time" if cell.estimate in SUBTRACTIONS else "no reading"
        reason = cell.status if cell.status != "ok" else lacking
        axes.annotate(
            f"× {reason}",
            (cell.x, 0 if pd.isna(cell.total_seconds) else cell.top),
            xytext=(0, 4),
            textcoords="offset points",
            rotation=90,
            fontsize=6.5,
            ha="center",
            va="bottom",
        )


def _limits(rows: pd.DataFrame) -> tuple[float, float]:
    """The same y range for every estimate of one recipe and strategy, with room for the words."""
    lowest = rows["communication_seconds"].min()
    # A cell without a time has the compute seconds of its share of T(1, b), and no bar.
    highest = rows.loc[rows["total_seconds"].notna(), TOPS].max(axis=None)
    named = rows.loc[_unusual(rows), "total_seconds"].max()
    top = pd.Series([1.08 * highest, named / (1 - WORDS_SHARE)]).max()
    return min(0.0, lowest) * 1.15, top if top > 0 else 1.0


def _unusual(rows: pd.DataFrame) -> pd.Series:
    """Whether a cell is to be named: it is not ok, or its epoch cannot be divided."""
    return (rows["status"] != "ok") | rows["communication_seconds"].isna()


def _label(axes: Axes, batches: list[int], counts: list[int], width: float) -> None:
    """The GPU count under each bar, the batch size under each group of bars."""
    middle = (len(counts) - 1) / 2
    places = [
        (group + (index - middle) * width, str(gpus))
        for group in range(len(batches))
        for index, gpus in enumerate(counts)
    ]
    # Else the label of a bar in the middle of its group is dropped for the group's.
    axes.xaxis.remove_overlapping_locs = False
    axes.set_xticks([x for x, _ in places], [text for _, text in places], minor=True)
    axes.set_xticks(range(len(batches)), [f"b = {size}" for size in batches])
    axes.tick_params(axis="x", which="minor", length=0, labelsize=6.5, labelcolor=style.GREY)
    axes.tick_params(axis="x", which="major", length=0, pad=14)
    axes.grid(visible=False, axis="x")
    axes.set_xlim(-0.6, len(batches) - 0.4)
    axes.set_xlabel("GPUs (small), batch size per GPU")


def main(argv: list[str] | None = None) -> None:
    """Write the figure as SVG."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--communication", type=Path, required=True, help="communication.csv of the study"
    )
    parser.add_argument("--output", type=Path, required=True, help="the SVG file to write")
    arguments = parser.parse_args(argv)
    communication = schema.read("communication", arguments.communication)
    with style.style("communication"):
        style.save(draw(communication), arguments.output)


if __name__ == "__main__":
    run_script(main)
