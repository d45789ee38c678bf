"""Draw how a study scales: epoch time, speedup and efficiency, compute and communication."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from scaling.core import numbers as fmt
from scaling.figures import style
from scaling.tables import schema
from scaling.tables.communication import SUBTRACTIONS, with_values

LOG_FROM_RATIO = 8
"""The ratio of the longest to the shortest epoch from which their axis is logarithmic."""
SPEEDUP_LABELS = {"speedup": "speedup over 1 GPU", "efficiency": "efficiency: speedup / N"}
"""What a recipe and strategy has a panel of, and the name of its axis."""
IDEAL: dict[str, Any] = {"color": style.GREY, "linestyle": "--", "linewidth": 1}
GROUP_WIDTH = 0.84
"""The width of a batch size's bars, of the distance between two batch sizes."""
WORDS_SHARE = 0.36
"""The height of the words above a bar, in heights of a panel."""
UNDIVIDED = "#c4c4c4"
TOPS = ["compute_seconds", "total_seconds"]
NEGATIVE: dict[str, Any] = {"facecolor": "white", "edgecolor": style.VERMILLION, "hatch": "////"}


def draw_epoch_time(timing: pd.DataFrame) -> Figure:
    """Draw a panel for each recipe and strategy: epoch time over batch size, a line for each N.

    A cell that is not ok is named below its panel.
    """
    groups = schema.by_configuration(timing)
    if not groups:
        return style.message_figure("The study has no cells.")
    batches, counts = _sizes_and_counts(timing)
    styles = {gpus: style.numbered(index) for index, gpus in enumerate(counts)}
    failed = timing["status"] != "ok"
    strip = [gpus for gpus in counts if gpus in set(timing.loc[failed, "gpus"])]
    figure, panels, bottoms = style.panels(
        [f"{recipe} · {strategy}" for recipe, strategy, _ in groups],
        strip_rows=len(strip),
        width=max(style.PANEL_INCHES[0], 0.68 * len(batches) + 0.5),
    )
    for axes, bottom, (_, _, rows) in zip(panels, bottoms, groups, strict=True):
        for index, gpus in enumerate(counts):
            cells = rows[rows["gpus"] == gpus].sort_values("batch_size")
            timed = cells[cells["epoch_seconds"].notna()]
            x = style.dodge(timed["batch_size"], index, len(counts), step=1.06)
            _draw_ranges(axes, x, timed, "epoch_seconds", styles[gpus])
            doubtful = timed["status"] != "ok"
            hollow = style.open_marker(styles[gpus])
            axes.plot(x[doubtful], timed.loc[doubtful, "epoch_seconds"], zorder=3, **hollow)
        style.batch_axis(axes, batches)
        notes = [
            style.Annotation(
                cell.batch_size, strip.index(cell.gpus), cell.status, styles[cell.gpus]["color"]
            )
            for cell in rows[failed[rows.index]].itertuples()
        ]
        style.annotate(bottom, notes, [fmt.gpus(gpus) for gpus in strip])
        bottom.set_xlabel("batch size per GPU")
        _limit_seconds(axes, timing["epoch_seconds_min"].min(), timing["epoch_seconds_max"].max())
    for axes in panels[::2]:
        axes.set_ylabel("seconds per epoch")
    handles = [style.line_handle(fmt.gpus(gpus), **styles[gpus]) for gpus in counts]
    if (timing["epoch_seconds"].notna() & failed).any():
        hollow = style.open_marker({"color": style.INK, "marker": "o"})
        handles.append(style.line_handle("timed, but not ok", **hollow))
    style.legend(figure, handles)
    return figure


def _sizes_and_counts(table: pd.DataFrame) -> tuple[list[int], list[int]]:
    batches = sorted({int(size) for size in table["batch_size"]})
    return batches, sorted({int(gpus) for gpus in table["gpus"]})


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
        style.log2_axis(axes.yaxis, [2.0**power for power in range(-10, 16)])
        axes.set_ylim(lowest / 1.25, highest * 1.25)
    else:
        axes.set_ylim(0, highest * 1.1 if highest > 0 else 1)


def draw_speedup(speedup: pd.DataFrame) -> Figure:
    """Draw two panels for each recipe and strategy, speedup and efficiency over the GPU count.

    A cell without a speedup is named below its panels.
    """
    batches, counts = _sizes_and_counts(speedup)
    if len(counts) < 2:
        return style.message_figure("A speedup needs cells on more than one number of GPUs.")
    speedup = _with_ranges(speedup)
    styles = style.batch_styles(batches)
    troubled = speedup[(speedup["status"] != "ok") | speedup["speedup"].isna()]
    strip = [batch for batch in batches if batch in set(troubled["batch_size"])]
    shown = [
        (*group, quantity)
        for group in schema.by_configuration(speedup)
        for quantity in SPEEDUP_LABELS
    ]
    figure, panels, bottoms = style.panels(
        [f"{recipe} · {strategy}: {quantity}" for recipe, strategy, _, quantity in shown],
        strip_rows=len(strip),
    )
    for axes, bottom, (_, _, rows, quantity) in zip(panels, bottoms, shown, strict=True):
        axes.plot(counts, counts if quantity == "speedup" else [1] * len(counts), zorder=1, **IDEAL)
        for index, batch in enumerate(batches):
            cells = rows[rows["batch_size"] == batch].sort_values("gpus")
            known = cells[cells["speedup"].notna()]
            x = style.dodge(known["gpus"], index, len(batches), step=1.02)
            _draw_ranges(axes, x, known, quantity, styles[batch])
        style.log2_axis(axes.xaxis, counts)
        axes.set_xlim(counts[0] / 1.35, counts[-1] * 1.35)
        _limit_ratio(axes, speedup, quantity, counts[-1])
        axes.set_ylabel(SPEEDUP_LABELS[quantity])
        notes = [
            style.Annotation(
                cell.gpus,
                strip.index(cell.batch_size),
                cell.status if cell.status != "ok" else "no 1-GPU time",
            )
            for cell in troubled[troubled.index.isin(rows.index)].itertuples()
        ]
        style.annotate(bottom, notes, [f"b = {batch}" for batch in strip])
        bottom.set_xlabel("GPUs")
    handles = [style.line_handle(f"b = {batch}", **styles[batch]) for batch in batches]
    style.legend(figure, [*handles, style.line_handle("ideal", **IDEAL)])
    return figure


def _with_ranges(speedup: pd.DataFrame) -> pd.DataFrame:
    """Add the range of the efficiency, and take that of both away on one GPU.

    There both are 1 by definition, whatever the spread of the time.
    """
    several = speedup["gpus"] > 1
    ends = {
        f"speedup_{end}": speedup[f"speedup_{end}"].where(several, speedup["speedup"])
        for end in ("min", "max")
    }
    over_gpus = {
        name.replace("speedup", "efficiency"): values / speedup["gpus"]
        for name, values in ends.items()
    }
    return speedup.assign(**ends, **over_gpus)


def _limit_ratio(axes: Axes, speedup: pd.DataFrame, quantity: str, most_gpus: int) -> None:
    """Give every panel of a quantity the same y range, with the ideal in it."""
    lowest = min(1.0, speedup[f"{quantity}_min"].min())
    if quantity == "speedup":
        highest = max(float(most_gpus), speedup["speedup_max"].max())
        style.log2_axis(axes.yaxis, [2.0**power for power in range(-6, 12)])
        axes.set_ylim(lowest / 1.15, highest * 1.15)
    else:
        highest = max(1.0, speedup["efficiency_max"].max())
        margin = 0.06 * max(highest - lowest, 0.1)
        axes.set_ylim(lowest - margin, highest + margin)


def draw_communication(communication: pd.DataFrame) -> Figure:
    """Draw the parts of an epoch as stacked bars: a panel for each configuration and estimate.

    A negative communication hangs below zero, hatched; an epoch that cannot be divided, as a single
    GPU's time or a measurement is missing, is a grey bar. A cell without a bar says why in its
    place.
    """
    if communication.empty:
        return style.message_figure("The study has no cell on more than one GPU.")
    groups = [
        (f"{recipe} · {strategy}\n{estimate.replace('_', ' ')}", rows, _bar_limits(of_both))
        for recipe, strategy, of_both in schema.by_configuration(with_values(communication))
        for estimate, rows in of_both.groupby("estimate", sort=False)
    ]
    batches, counts = _sizes_and_counts(communication)
    width = GROUP_WIDTH / len(counts)
    offsets = {gpus: (i - (len(counts) - 1) / 2) * width for i, gpus in enumerate(counts)}
    figure, panels, _ = style.panels(
        [title for title, _, _ in groups],
        width=max(style.PANEL_INCHES[0], 0.26 * len(batches) * len(counts) + 0.9),
    )
    for axes, (_, rows, limits) in zip(panels, groups, strict=True):
        x = rows["batch_size"].map(batches.index) + rows["gpus"].map(offsets)
        _draw_bars(axes, rows.assign(x=x), 0.9 * width)
        _label_bars(axes, batches, offsets)
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
    axes.bar(known["x"], known["compute_seconds"], width, color=style.BLUE)
    axes.bar(
        positive["x"],
        positive["communication_seconds"],
        width,
        bottom=positive["compute_seconds"],
        color=style.VERMILLION,
    )
    axes.bar(negative["x"], negative["communication_seconds"], width, **NEGATIVE)
    axes.axhline(0, color=style.GREY, linewidth=0.8)
    undivided = rows[rows["compute_seconds"].isna() & rows["total_seconds"].notna()]
    axes.bar(undivided["x"], undivided["total_seconds"], width, color=UNDIVIDED)
    rows = rows.assign(top=rows[TOPS].max(axis=1))
    for cell in rows[_is_unusual(rows)].itertuples():
        missing = "no 1-GPU time" if cell.estimate in SUBTRACTIONS else "no reading"
        reason = cell.status if cell.status != "ok" else missing
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


def _bar_limits(rows: pd.DataFrame) -> tuple[float, float]:
    """One y range for all estimates of a recipe and strategy, with room for the words."""
    lowest = rows["communication_seconds"].min()
    # A cell without a time has the compute seconds of its share of T(1, b), and no bar.
    highest = rows.loc[rows["total_seconds"].notna(), TOPS].max(axis=None)
    named = rows.loc[_is_unusual(rows), "total_seconds"].max()
    top = pd.Series([1.08 * highest, named / (1 - WORDS_SHARE)]).max()
    return min(0.0, lowest) * 1.15, top if top > 0 else 1.0


def _is_unusual(rows: pd.DataFrame) -> pd.Series:
    """Whether a cell is to be named: it is not ok, or its epoch cannot be divided."""
    return (rows["status"] != "ok") | rows["communication_seconds"].isna()


def _label_bars(axes: Axes, batches: list[int], offsets: dict[int, float]) -> None:
    """Write the GPU count under each bar, the batch size under each group of bars."""
    places = [group + offset for group in range(len(batches)) for offset in offsets.values()]
    # Else the label of a bar in the middle of its group is dropped for the group's.
    axes.xaxis.remove_overlapping_locs = False
    axes.set_xticks(places, [str(gpus) for gpus in offsets] * len(batches), minor=True)
    axes.set_xticks(range(len(batches)), [f"b = {size}" for size in batches])
    axes.tick_params(axis="x", which="minor", length=0, labelsize=6.5, labelcolor=style.GREY)
    axes.tick_params(axis="x", which="major", length=0, pad=14)
    axes.grid(visible=False, axis="x")
    axes.set_xlim(-0.6, len(batches) - 0.4)
    axes.set_xlabel("GPUs (small), batch size per GPU")
