"""The int8 network: distributions of its values."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullLocator

from scaling.figures import style

QUANTITIES = {"weights": "weights", "before_relu": "before ReLU", "after_relu": "after ReLU"}
LEVELS_PER_BIN = 4
"""Levels per bin at 8 bits; with fewer bits, each level has a bin."""
WIDTH_INCHES, ROW_INCHES = 6.8, 1.75


def draw_quantization_histograms(histograms: pd.DataFrame) -> Figure | None:
    """Draw the distributions of each layer's values: a row of panels, a column per quantity.

    y is the share of values in a bin of levels, logarithmic, as most activations are near zero; x
    is the float value, for integers level / scale.
    """
    layers = histograms["layer"].unique()
    if not len(layers):
        return None
    found = dict(list(histograms.groupby(["layer", "quantity"])))
    size = (WIDTH_INCHES, ROW_INCHES * len(layers) + 0.6)
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
    axes.stairs(*_shares(rows, "int8"), fill=True, color=style.SKY, alpha=0.5)
    axes.stairs(*_shares(rows, "float"), baseline=None, color=style.INK, linewidth=1)
    ends = [first["highest"] + 0.5, first["lowest"] - 0.5]
    for limit in ends[:1] if first["quantity"] == "after_relu" else ends:
        axes.axvline(limit / first["scale"], color=style.VERMILLION, linestyle=":", linewidth=1)
    axes.set_yscale("log")
    axes.set_ylim(top=1)
    axes.yaxis.set_major_locator(LogLocator(numticks=5))
    axes.yaxis.set_minor_locator(NullLocator())
    size = f"1 step = {1 / first['scale']:.3g}"
    axes.set_title(size, loc="right", fontsize=7, fontweight="normal")


def _shares(rows: pd.DataFrame, values: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the shares of `values` [k] in bins of some levels, and the edges [k + 1]."""
    rows, first = rows[rows["values"] == values], rows.iloc[0]
    scale, width = first["scale"], LEVELS_PER_BIN if first["highest"] > 64 else 1
    bins = np.rint(rows["bin_low"] * scale + 0.5).astype(int) // width
    counts = np.bincount(bins - bins.min(), weights=rows["count"])
    edges = (np.arange(bins.min(), bins.max() + 2) * width - 0.5) / scale
    return counts / counts.sum(), edges
