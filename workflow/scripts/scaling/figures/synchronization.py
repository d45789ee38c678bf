"""Every message of a training step as a bar, one panel per parallel mode."""

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullLocator

from scaling.core import numbers as fmt
from scaling.figures import style
from scaling.tables.schema import rows_of

COLOURS = {
    "gradients": style.VERMILLION,
    "parameters": style.BLUE,
    "parameters and buffers": style.BLUE,
    "buffers": style.GREEN,
    "batch statistics": style.PURPLE,
    "images": style.SKY,
    "outputs": style.ORANGE,
    "gradients of outputs": "#f0c987",
}
PANEL_INCHES = (6.8, 1.55)
MOST_LABELS = 12
FEWEST_PLACES = 9
GAP = 0.8
"""Distance between two phases, in bars."""


def draw_collectives(collectives: pd.DataFrame) -> Figure | None:
    """Draw a panel for each measured mode: its start, then its last recorded step.

    Bars are bytes on a logarithmic axis, coloured by content; the dashed line is K.
    """
    known = collectives[collectives["bytes"].notna()]
    ways = list(known["way"].unique())
    if not ways:
        return None
    width, height = PANEL_INCHES
    figure = Figure(figsize=(width, height * len(ways) + 0.5), layout="constrained")
    panels = figure.subplots(len(ways), 1, squeeze=False)[:, 0]
    k = int(known["gradient_bytes"].iloc[0])
    for axes, way in zip(panels, ways, strict=True):
        _draw_panel(axes, way, known[known["way"] == way], k)
    shown = [content for content in COLOURS if content in set(known["content"])]
    handles = [Patch(color=COLOURS[content], label=content) for content in shown]
    if not set(known["content"]) <= set(COLOURS):
        handles.append(Patch(color=style.GREY, label="shapes, other"))
    line = style.line_handle(f"K = {fmt.data(k)}", color=style.GREY, linestyle="--", linewidth=1)
    style.legend(figure, [], *handles, line)
    return figure


def _draw_panel(axes: Axes, way: str, rows: pd.DataFrame, k: int) -> None:
    last = rows["step"].max()
    rows = rows[rows["step"].isin([0, last])]
    gpus = fmt.gpus(int(rows["gpus"].iloc[0]))
    axes.set_title(f"{way} · {gpus} · {rows['backend'].iloc[0]}")
    x = 0.0
    for index, (phase, messages) in enumerate(rows.groupby("phase", sort=False)):
        if index:
            axes.axvline(x - 0.5 + GAP / 2, color=style.GREY, linewidth=0.8)
            x += GAP
        places = [x + offset for offset in range(len(messages))]
        colours = [COLOURS.get(content, style.GREY) for content in messages["content"]]
        bars = axes.bar(places, messages["bytes"], color=colours, width=0.8, bottom=0.5)
        for bar, row in zip(bars, rows_of(messages), strict=True):
            bar.set_url(f"{row.kind} of {row.content}, {fmt.data(row.bytes)} · collectives.csv")
        where = "once, at the start" if phase == "start" else f"each step, {phase}"
        middle = (places[0] + places[-1]) / 2
        axes.text(middle, -0.04, where, transform=axes.get_xaxis_transform(), va="top", ha="center")
        if len(rows) <= MOST_LABELS:
            for place, size in zip(places, messages["bytes"], strict=True):
                box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
                axes.text(place, size * 2.4, fmt.data(size), ha="center", fontsize=7.5, bbox=box)
        x = places[-1] + 1
    axes.axhline(k, color=style.GREY, linestyle="--", linewidth=1, zorder=0)
    axes.set(
        yscale="log",
        ylim=(0.5, max(k, rows["bytes"].max()) * 30),
        xlim=(-0.8, max(x, FEWEST_PLACES) - 0.2),
    )
    powers = range(0, math.ceil(math.log10(k)) + 1, 3)
    axes.set_yticks([10.0**power for power in powers])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: fmt.data(value)))
    axes.set_xticks([])
    axes.grid(visible=False, axis="x")
