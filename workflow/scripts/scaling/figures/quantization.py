"""The int8 network: distributions of its values, and the accuracy loss of fewer bits."""

from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from scaling.figures import style
from scaling.tables.experiments.quantization_cost import STANDARD_ERRORS, bits, cost, low_bits
from scaling.tables.schema import rows_of

QUANTITIES = {"weights": "weights", "before_relu": "before ReLU", "after_relu": "after ReLU"}
LEVELS_PER_BIN = 4
"""Levels per bin at 8 bits; with fewer bits, each level has a bin."""
ROW_INCHES = 1.75
TICKS = [-50, -20, -10, -5, -2, -1, -0.5, 0, 0.5, 1]


def draw_quantization_histograms(histograms: pd.DataFrame) -> Figure | None:
    """Draw the distributions of each layer's values: a row of panels, a column per quantity.

    The y axis is the share of values in a bin of 4 integer levels (1 below 8 bits), logarithmic, as
    most activations are near zero; the x axis is the float value, for integers level / scale.
    """
    layers = histograms["layer"].unique()
    if not len(layers):
        return None
    found = dict(list(histograms.groupby(["layer", "quantity"])))
    size = (2 * style.PANEL_INCHES[0], ROW_INCHES * len(layers) + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(layers), len(QUANTITIES), squeeze=False)
    for name, row in zip(layers, grid, strict=True):
        for quantity, axes in zip(QUANTITIES, row, strict=True):
            if (name, quantity) in found:
                _draw_histogram(axes, found[name, quantity])
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
    style.legend(figure, [], *handles)
    whose = f"{histograms['stage'].iloc[0]}, seed {histograms['seed'].iloc[0]}"
    figure.suptitle(whose, x=0.99, ha="right", fontsize=9, color=style.GREY)
    return figure


def _draw_histogram(axes: Axes, rows: pd.DataFrame) -> None:
    first = rows.iloc[0]
    scale, lowest, highest = first["scale"], first["lowest"], first["highest"]
    width = LEVELS_PER_BIN if highest - lowest > 128 else 1
    shares, edges = _shares(rows[rows["values"] == "int8"], width)
    axes.stairs(shares, edges, fill=True, color=style.SKY, alpha=0.5)
    shares, edges = _shares(rows[rows["values"] == "float"], width)
    axes.stairs(shares, edges, baseline=None, color=style.INK, linewidth=1)
    after_relu = first["quantity"] == "after_relu"
    for limit in (highest + 0.5,) if after_relu else (lowest - 0.5, highest + 0.5):
        axes.axvline(limit / scale, color=style.VERMILLION, linestyle=":", linewidth=1)
    axes.set_yscale("log")
    axes.set_ylim(top=1)
    axes.yaxis.set_major_locator(LogLocator(numticks=5))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_title(f"1 step = {1 / scale:.3g}", loc="right", fontsize=7, fontweight="normal")


def _shares(rows: pd.DataFrame, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the shares of values [k] in bins of `width` levels, and the edges [k + 1]."""
    scale = rows["scale"].iloc[0]
    levels = np.rint(rows["bin_low"] * scale + 0.5).astype(int)
    bins = levels // width
    counts = np.bincount(bins - bins.min(), weights=rows["count"])
    edges = (np.arange(bins.min(), bins.max() + 2) * width - 0.5) / scale
    return counts / counts.sum(), edges


def draw_quantization_sizes(quantization: pd.DataFrame) -> Figure | None:
    """Draw the difference to float32 over the packed size, a line for each method.

    A point is a variant's mean over the seeds, its bar two standard errors. The line connects
    variants with 8-bit activations; open markers have fewer. The last method's points are labelled.
    """
    low = low_bits(quantization)
    if low.empty:
        return None
    title = "Accuracy over size, by bits of weights and activations"
    figure, (axes,) = style.panels([title], "packed size, kB", "points to float32")
    figure.set_figwidth(2 * style.PANEL_INCHES[0])
    groups = {}
    for method, rows in low.groupby("method", sort=False):
        points = pd.DataFrame([_point(same) for _, same in rows.groupby("stage", sort=False)])
        groups[fill(str(method), 95)] = points.sort_values("size")
    style.lines(axes, groups.values(), "size", "loss", "quantization", linestyle="none")
    for index, points in enumerate(groups.values()):
        joined = points if points["open"].all() else points[~points["open"]]
        axes.plot(joined["size"], joined["loss"], color=style.numbered(index)["color"])
    # The bits of one line name the places of all.
    for row in rows_of(joined):
        words, place = row.name.split("\u00a0")[0], (row.size, row.loss)
        axes.annotate(words, place, (0, 9), textcoords="offset points", ha="center", fontsize=7.5)
    axes.axhline(0, color=style.GREY, linewidth=1, linestyle="--")
    axes.set_yscale("symlog", linthresh=1.0)
    axes.yaxis.set_major_locator(FixedLocator(TICKS))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}".replace("-", "−")))
    style.legend(figure, groups)
    return figure


def _point(same: pd.DataFrame) -> dict[str, Any]:
    """Return a variant's activation bits, kB, difference with two standard errors, and bits."""
    found, row = cost(same), next(rows_of(same))
    loss = found.difference_points
    error = STANDARD_ERRORS * np.nan_to_num(found.standard_error_points)
    return {
        "open": row.activation_bits < 8,
        "size": same["packed_bytes"].mean() / 1000,
        **{"loss": loss, "loss_min": loss - error, "loss_max": loss + error},
        "name": bits(row),
    }
