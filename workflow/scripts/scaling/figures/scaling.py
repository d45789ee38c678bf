"""Draw how a study scales: epoch time, efficiency and speedup, estimates of communication."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scaling.core import numbers as fmt
from scaling.figures import style
from scaling.tables import schema

LOG_FROM_RATIO = 8
"""The ratio of the longest to the shortest epoch from which their axis is logarithmic."""
IDEAL: dict[str, Any] = {"color": style.GREY, "linestyle": "--", "linewidth": 1}
POWERS = [2.0**power for power in range(-10, 16)]


def draw_epoch_time(timing: pd.DataFrame) -> Figure:
    """Draw a panel for each recipe and strategy: epoch time over batch size, a line for each N."""
    timed = timing[timing["epoch_seconds"].notna()]
    if timed.empty:
        return style.message_figure("No cell of the study has a time.")
    groups = schema.by_configuration(timed)
    counts = sorted(timed["gpus"].unique())
    figure, panels = style.panels([f"{recipe} · {strategy}" for recipe, strategy, _ in groups])
    for axes, (_, _, rows) in zip(panels, groups, strict=True):
        for index, gpus in enumerate(counts):
            cells = rows[rows["gpus"] == gpus].sort_values("batch_size")
            x = style.dodge(cells["batch_size"], index, len(counts), step=1.06)
            _draw_ranges(axes, x, cells, "epoch_seconds", style.numbered(index))
        style.batch_axis(axes, sorted(timing["batch_size"].unique()))
        axes.set_xlabel("batch size per GPU")
        _limit_seconds(axes, timed["epoch_seconds_min"].min(), timed["epoch_seconds_max"].max())
    for axes in panels[::2]:
        axes.set_ylabel("seconds per epoch")
    style.legend(
        figure,
        [
            style.line_handle(fmt.gpus(gpus), **style.numbered(index))
            for index, gpus in enumerate(counts)
        ],
    )
    return figure


def _draw_ranges(
    axes: Axes, x: pd.Series, rows: pd.DataFrame, column: str, look: dict[str, Any]
) -> None:
    """Draw a line of `column` with bars from its minimum to its maximum."""
    value = rows[column]
    errors = [value - rows[f"{column}_min"], rows[f"{column}_max"] - value]
    axes.errorbar(x, value, yerr=errors, **look)


def _limit_seconds(axes: Axes, lowest: float, highest: float) -> None:
    """Limit the y axis, logarithmic where the times span more than `LOG_FROM_RATIO`."""
    if highest > LOG_FROM_RATIO * lowest:
        style.log2_axis(axes.yaxis, POWERS)
        axes.set_ylim(lowest / 1.25, highest * 1.25)
    else:
        axes.set_ylim(0, highest * 1.1)


def draw_speedup(speedup: pd.DataFrame) -> Figure:
    """Draw efficiency over batch size, a panel for each N; for three or more N, speedup over N.

    A line for each recipe and strategy; in the speedup it is the batch size that scales best.
    """
    known = speedup[(speedup["gpus"] > 1) & speedup["speedup"].notna()]
    if known.empty:
        return style.message_figure("A speedup needs cells on one GPU and on several.")
    counts = sorted(known["gpus"].unique())
    ends = {f"efficiency_{end}": known[f"speedup_{end}"] / known["gpus"] for end in ("min", "max")}
    known = known.assign(**ends)
    groups = schema.by_configuration(known)
    titles = [f"Efficiency on {fmt.gpus(gpus)}" for gpus in counts]
    over_gpus = ["Speedup at the best batch size"] if len(counts) > 1 else []
    figure, panels = style.panels([*titles, *over_gpus])
    for axes, gpus in zip(panels, counts, strict=False):
        axes.axhline(1, **IDEAL)
        for index, (_, _, rows) in enumerate(groups):
            cells = rows[rows["gpus"] == gpus].sort_values("batch_size")
            x = style.dodge(cells["batch_size"], index, len(groups), step=1.06)
            _draw_ranges(axes, x, cells, "efficiency", style.numbered(index))
        style.batch_axis(axes, sorted(known["batch_size"].unique()))
        axes.set_ylim(0, max(1.1, 1.05 * known["efficiency_max"].max()))
        axes.set_xlabel("batch size per GPU")
        axes.set_ylabel("speedup / N")
    for axes in panels[len(counts) :]:
        axes.plot([1, *counts], [1, *counts], **IDEAL)
        for index, (_, _, rows) in enumerate(groups):
            best = rows.loc[rows.groupby("gpus")["speedup"].idxmax()]
            _draw_ranges(axes, best["gpus"], best, "speedup", style.numbered(index))
        style.log2_axis(axes.xaxis, [1, *counts])
        style.log2_axis(axes.yaxis, POWERS)
        lowest, highest = known["speedup_min"].min(), known["speedup_max"].max()
        axes.set_ylim(min(1, lowest) / 1.15, 1.15 * max(counts[-1], highest))
        axes.set_xlabel("GPUs")
        axes.set_ylabel("speedup over 1 GPU")
    handles = [
        style.line_handle(f"{recipe} · {strategy}", **style.numbered(index))
        for index, (recipe, strategy, _) in enumerate(groups)
    ]
    style.legend(figure, [*handles, style.line_handle("ideal", **IDEAL)])
    return figure


def draw_communication(communication: pd.DataFrame) -> Figure:
    """Draw every estimate of communication as a share of its epoch, on the most GPUs.

    A panel for each recipe and strategy, a dot for each cell and estimate.
    """
    known = communication[communication["communication_seconds"].notna()]
    if known.empty:
        return style.message_figure("The study has no communication to draw.")
    known = known[known["gpus"] == known["gpus"].max()]
    share = 100 * known["communication_seconds"] / known["total_seconds"]
    known = known.assign(share=share)
    groups = schema.by_configuration(known)
    estimates = list(known["estimate"].unique())
    figure, panels = style.panels([f"{recipe} · {strategy}" for recipe, strategy, _ in groups])
    for axes, (_, _, rows) in zip(panels, groups, strict=True):
        axes.axhline(0, color=style.GREY, linewidth=0.8)
        for index, estimate in enumerate(estimates):
            cells = rows[rows["estimate"] == estimate]
            x = style.dodge(cells["batch_size"], index, len(estimates), step=1.12)
            axes.plot(x, cells["share"], linestyle="none", **style.numbered(index))
        style.batch_axis(axes, sorted(known["batch_size"].unique()))
        axes.set_xlabel(f"batch size per GPU, {fmt.gpus(known['gpus'].max())}")
    for axes in panels[::2]:
        axes.set_ylabel("% of the epoch")
    handles = [
        style.line_handle(fmt.estimate(estimate), linestyle="none", **style.numbered(index))
        for index, estimate in enumerate(estimates)
    ]
    style.legend(figure, handles, longest_row=3)
    return figure
