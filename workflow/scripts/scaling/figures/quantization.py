"""Draw the int8 network: how its values are distributed, and what fewer bits cost."""

from collections.abc import Callable
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from scaling.core.errors import UserError
from scaling.figures import style
from scaling.tables.experiments.quantization_cost import bits, cost, low_bits

QUANTITIES = {
    "weights": "weights",
    "before_relu": "activations before ReLU",
    "after_relu": "activations after ReLU",
}
LEVELS_PER_BIN = 4
"""Where there are 8 bits; with fewer, each level has a bin."""
INT8 = [-128, 127]
ROW_INCHES = 1.75
PANELS: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "Fewer bits of weights, activations of 8": lambda rows: rows["activation_bits"] == 8,
    "Fewer bits of both": lambda rows: rows["activation_bits"] == rows["weight_bits"],
    "Fewer bits of activations, weights of 8": lambda rows: rows["weight_bits"] == 8,
}
LINEAR_POINTS = 1.0
"""Differences up to this are drawn to scale, larger ones on a logarithmic axis."""
LEGEND_CHARACTERS = 95
TICKS = [-50, -20, -10, -5, -2, -1, -0.5, 0, 0.5, 1]


def draw_quantization_histograms(record: dict[str, Any] | None) -> Figure:
    """Draw a row of panels per layer, a column per kind of value, from a record with histograms.

    The y axis is the share of values in a bin of 4 integer levels (one, below 8 bits), logarithmic,
    as most activations lie near zero; the x axis is the float value, for integers level / scale.
    Raises UserError for a record without histograms.
    """
    if record is None:
        return style.message_figure("the study has no Part B")
    if "histograms" not in record:
        raise UserError(
            f"the record of {record['variant']} has no histograms; make it with --histograms"
        )
    found = {(entry["layer"], entry["quantity"]): entry for entry in record["histograms"]}
    layers = record["layers"]
    figure = Figure(figsize=(10, ROW_INCHES * len(layers) + 0.6), layout="constrained")
    grid = figure.subplots(len(layers), len(QUANTITIES), squeeze=False)
    for layer, row in zip(layers, grid, strict=True):
        name = layer["layer"]
        for quantity, axes in zip(QUANTITIES, row, strict=True):
            if (name, quantity) in found:
                _draw_histogram(axes, found[name, quantity], *_levels(layer, quantity))
            else:
                axes.set_axis_off()
                axes.text(0.5, 0.5, "no ReLU after this layer", ha="center", color=style.GREY)
        row[0].set_ylabel(f"{name}\nshare of values")
    for axes, title in zip(grid[0], QUANTITIES.values(), strict=True):
        axes.set_title(title)
    handles = [
        Patch(color=style.SKY, alpha=0.5, label="quantized, step / scale"),
        style.line_handle("float32", color=style.INK, linewidth=1),
        style.line_handle("first and last step", color=style.VERMILLION, linestyle=":"),
    ]
    style.legend(figure, handles)
    # Before there were variants, all was int8.
    whose = f"{record.get('variant', 'weights+activations+bias')}, seed {record['seed']}"
    figure.suptitle(whose, x=0.99, ha="right", fontsize=9, color=style.GREY)
    return figure


def _levels(layer: dict[str, Any], quantity: str) -> tuple[int, int]:
    """The lowest and the highest integer that a layer's values can have."""
    if quantity == "weights":
        highest = 2 ** (layer.get("weight_bits", 8) - 1) - 1
        return -highest, highest
    lowest, highest = layer.get("output_steps") or INT8
    return lowest, highest


def _draw_histogram(axes: Axes, entry: dict[str, Any], lowest: int, highest: int) -> None:
    scale = entry["scale"]
    width = LEVELS_PER_BIN if highest - lowest > 128 else 1
    shares, edges = _shares(entry["int8"], scale, width)
    axes.stairs(shares, edges, fill=True, color=style.SKY, alpha=0.5)
    shares, edges = _shares(entry["float"], scale, width)
    axes.stairs(shares, edges, baseline=None, color=style.INK, linewidth=1)
    after_relu = entry["quantity"] == "after_relu"
    for limit in (highest + 0.5,) if after_relu else (lowest - 0.5, highest + 0.5):
        axes.axvline(limit / scale, color=style.VERMILLION, linestyle=":", linewidth=1)
    axes.set_yscale("log")
    axes.set_ylim(top=1)
    axes.yaxis.set_major_locator(LogLocator(numticks=5))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.text(
        0.98,
        0.97,
        f"1 step = {1 / scale:.3g}",
        transform=axes.transAxes,
        ha="right",
        va="top",
        fontsize=7,
        color=style.INK,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
    )


def _shares(
    histogram: dict[str, Any], scale: float, width: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The histogram by bins of `width` levels from multiples of it: shares [k], edges [k + 1]."""
    levels = np.rint(np.array(histogram["bin_edges"][:-1]) * scale + 0.5).astype(int)
    bins = levels // width
    counts = np.bincount(bins - bins[0], weights=histogram["counts"])
    edges = (np.arange(bins[0], bins[-1] + 2) * width - 0.5) / scale
    return counts / counts.sum(), edges


def draw_quantization_sizes(quantization: pd.DataFrame) -> Figure:
    """Draw a panel for each way to take bits away, with a line for each method.

    A point is a variant's mean over the seeds of the difference to float32, its bar two standard
    errors; x is the packed size, or where it stays the same the bits of activations.
    """
    low = low_bits(quantization)
    shown = {title: low[chosen(low)] for title, chosen in PANELS.items()}
    fewer = {
        title: rows
        for title, rows in shown.items()
        if ((rows["weight_bits"] < 8) | (rows["activation_bits"] < 8)).any()
    }
    if not fewer:
        return style.message_figure("No variant of this study has fewer than 8 bits.")
    methods = {name: style.numbered(index) for index, name in enumerate(low["method"].unique())}
    figure, panels = style.panels(list(fewer))
    for axes, (title, rows) in zip(panels, fewer.items(), strict=True):
        by_size = not title.startswith("Fewer bits of activations")
        points = []
        for method, look in methods.items():
            own = rows[rows["method"] == method]
            if len(own):
                points += _draw_method(axes, own, by_size, look)
        _name_lowest(axes, points)
        axes.axhline(0, color=style.GREY, linewidth=1, linestyle="--")
        axes.set_yscale("symlog", linthresh=LINEAR_POINTS)
        axes.yaxis.set_major_locator(FixedLocator(TICKS))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}".replace("-", "−")))
        axes.set_ylabel("points to float32")
        axes.set_xlabel("packed size, kB" if by_size else "bits of activations")
    handles = [
        style.line_handle(fill(method, LEGEND_CHARACTERS), **look)
        for method, look in methods.items()
    ]
    handles.append(style.line_handle("float32", color=style.GREY, linestyle="--", linewidth=1))
    figure.legend(handles=handles, loc="outside upper left", ncols=1)
    return figure


def _draw_method(
    axes: Axes, rows: pd.DataFrame, by_size: bool, look: dict[str, Any]
) -> list[tuple[float, float, str]]:
    """Draw a method's variants; returns x, y and bits of each point."""
    points = []
    for _, same in rows.groupby("stage", sort=False):
        found, row = cost(same), next(same.itertuples())
        x = same["packed_bytes"].mean() / 1000 if by_size else row.activation_bits
        points.append((x, found.difference_points, 2 * found.standard_error_points, bits(row)))
    x, y, errors, names = zip(*sorted(points), strict=True)
    axes.errorbar(x, y, yerr=np.nan_to_num(errors), **look)
    return list(zip(x, y, names, strict=True))


def _name_lowest(axes: Axes, points: list[tuple[float, float, str]]) -> None:
    """Write the bits beside the lowest of the points that share them."""
    lowest = {name: (x, y) for x, y, name in sorted(points, key=lambda point: -point[1])}
    for name, place in lowest.items():
        axes.annotate(
            name, place, (4, -9), textcoords="offset points", fontsize=6.5, color=style.GREY
        )
