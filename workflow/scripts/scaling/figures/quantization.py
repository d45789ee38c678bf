"""The int8 network: distributions of its values."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullLocator

from scaling.figures import style

QUANTITIES = {"weights": "weights", "before_relu": "before ReLU", "after_relu": "after ReLU"}
LIMITS = {"weights": (-127.5, 127.5), "before_relu": (-128.5, 127.5), "after_relu": (127.5,)}
"""The outer edges of the first and the last level of int8; the last where nothing is negative."""
LEVELS_PER_BIN = 4
LOOKS: dict[str, dict[str, Any]] = {
    "int8": {"fill": True, "color": style.SKY, "alpha": 0.5},
    "float": {"baseline": None, "color": style.INK, "linewidth": 1},
}
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
    """Draw the shares of values in bins of `LEVELS_PER_BIN`, and the ends of int8."""
    quantity, scale = rows[["quantity", "scale"]].iloc[0]
    for values, look in LOOKS.items():
        own = rows[rows["values"] == values]
        levels = (own["bin_low"] * scale + 0.5).round()
        first = levels.min() // LEVELS_PER_BIN * LEVELS_PER_BIN
        edges = np.arange(first, levels.max() + LEVELS_PER_BIN + 1, LEVELS_PER_BIN) - 0.5
        shares, _ = np.histogram(levels, edges, weights=own["count"] / own["count"].sum())
        axes.stairs(shares, edges / scale, **look)
    for limit in LIMITS[quantity]:
        axes.axvline(limit / scale, color=style.VERMILLION, linestyle=":", linewidth=1)
    axes.set(yscale="log", ylim=(None, 1))
    axes.yaxis.set_major_locator(LogLocator(numticks=5))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_title(f"1 step = {1 / scale:.3g}", loc="right", fontsize=7, fontweight="normal")
