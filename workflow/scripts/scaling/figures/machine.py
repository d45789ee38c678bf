"""All-reduces alone and in training, and the messages of a training step."""

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from scaling.core import numbers as fmt
from scaling.figures import style
from scaling.tables.communication import MOVING, preferred_estimates
from scaling.tables.schema import rows_of

CONTENTS = {
    "gradients": style.VERMILLION,
    "parameters": style.BLUE,
    "parameters and buffers": style.BLUE,
    "buffers": style.GREEN,
    "batch statistics": style.PURPLE,
    "images": style.SKY,
    "outputs": style.ORANGE,
    "gradients of outputs": "#f0c987",
}
MODE_INCHES = (6.8, 1.55)
MOST_LABELS = 12
FEWEST_PLACES = 9
GAP = 0.8
"""Distance between two phases, in bars."""


def draw_bandwidth(interconnect: pd.DataFrame, bandwidth: pd.DataFrame) -> Figure | None:
    """Draw bus bandwidth over message size, a panel for each N: the sweep, and training.

    Open markers are DistributedDataParallel's buckets. Dots are trainings, at the bytes of a step,
    by the estimate that the report prefers.
    """
    counts = sorted(interconnect["gpus"].unique())
    if not counts:
        return None
    bytes_of, seconds = interconnect["message_bytes"], interconnect["seconds"]
    swept = interconnect.assign(
        rate=interconnect["busbw_gb_per_s"],
        rate_min=interconnect["busbw_gb_per_s"] * seconds / interconnect["seconds_max"],
        rate_max=interconnect["busbw_gb_per_s"] * seconds / interconnect["seconds_min"],
        name=interconnect["kind"] + ", " + bytes_of.map(fmt.data),
        open=interconnect["kind"].str.endswith("bucket"),
    )
    reached = preferred_estimates(bandwidth, MOVING).rename(columns={"bandwidth_gb_per_s": "rate"})
    titles = [f"All-reduce on {fmt.gpus(gpus)}" for gpus in counts]
    figure, panels = style.panels(titles, "bytes of a message", "GB/s")
    for axes, gpus in zip(panels, counts, strict=True):
        rows = swept[swept["gpus"] == gpus].sort_values("message_bytes")
        style.lines(axes, [rows], "message_bytes", "rate", "interconnect")
        rows = reached[reached["gpus"] == gpus]
        look = {"linestyle": "none", **style.numbered(1), "markersize": 3}
        style.lines(axes, [rows], "bytes_per_iteration", "rate", "bandwidth", **look)
        style.log2_axis(axes.xaxis, [1000 * 16**power for power in range(6)])
        axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: fmt.data(size)))
        values = pd.concat([swept["rate"], reached["rate"]])
        style.log2_axis(axes.yaxis, style.POWERS, (values.min() / 2, values.max() * 2))
    style.legend(figure, ["all-reduce alone", "in a step of training"], linestyle="none")
    return figure


def draw_collectives(collectives: pd.DataFrame) -> Figure | None:
    """Draw a panel for each measured mode: its start, then its last recorded step.

    Bars are bytes on a logarithmic axis, coloured by content; the dashed line is K.
    """
    known = collectives[collectives["bytes"].notna()]
    ways = list(known["way"].unique())
    if not ways:
        return None
    width, height = MODE_INCHES
    figure = Figure(figsize=(width, height * len(ways) + 0.5), layout="constrained")
    panels = figure.subplots(len(ways), 1, squeeze=False)[:, 0]
    k = int(known["gradient_bytes"].iloc[0])
    for axes, way in zip(panels, ways, strict=True):
        _draw_mode(axes, way, known[known["way"] == way], k)
    shown = [content for content in CONTENTS if content in set(known["content"])]
    handles = [Patch(color=CONTENTS[content], label=content) for content in shown]
    if not set(known["content"]) <= set(CONTENTS):
        handles.append(Patch(color=style.GREY, label="shapes, other"))
    line = style.line_handle(f"K = {fmt.data(k)}", color=style.GREY, linestyle="--", linewidth=1)
    style.legend(figure, [], *handles, line)
    return figure


def _draw_mode(axes: Axes, way: str, rows: pd.DataFrame, k: int) -> None:
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
        colours = [CONTENTS.get(content, style.GREY) for content in messages["content"]]
        bars = axes.bar(places, messages["bytes"], color=colours, width=0.8, bottom=0.5)
        for bar, row in zip(bars, rows_of(messages), strict=True):
            bar.set_url(f"{row.kind} of {row.content}, {fmt.data(row.bytes)} · collectives.csv")
        where = "once, at the start" if phase == "start" else f"each step, {phase}"
        middle = (places[0] + places[-1]) / 2
        axes.text(middle, -0.04, where, transform=axes.get_xaxis_transform(), va="top", ha="center")
        if len(rows) <= MOST_LABELS:
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
            sizes = messages["bytes"].map(fmt.data)
            axes.bar_label(bars, sizes, padding=3, fontsize=7.5, bbox=box)
        x = places[-1] + 1
    axes.axhline(k, color=style.GREY, linestyle="--", linewidth=1, zorder=0)
    powers = range(0, math.ceil(math.log10(k)) + 1, 3)
    style.log2_axis(axes.yaxis, [10.0**power for power in powers])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: fmt.data(value)))
    right, top = max(x, FEWEST_PLACES) - 0.2, max(k, rows["bytes"].max()) * 30
    axes.set(xlim=(-0.8, right), ylim=(0.5, top), xticks=[])
    axes.grid(visible=False, axis="x")
