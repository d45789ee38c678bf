"""The figure of the int8 network: distributions of its values."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from scaling.figures import style
from scaling.tables.schema import StudyTables

QUANTITIES = {"weights": "weights", "before_relu": "before ReLU", "after_relu": "after ReLU"}
LIMITS = {"weights": (-127.5, 127.5), "before_relu": (-128.5, 127.5), "after_relu": (127.5,)}
"""The outer edges of the first and last int8 level; of the last alone if no value is negative."""
LEVELS_PER_BIN = 4
LOOKS: dict[str, dict[str, Any]] = {
    "int8": {"fill": True, "color": style.figures.OTHERS[1], "alpha": 0.4},
    "float": {"baseline": None, "color": style.INK, "linewidth": 1},
}
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
ROW, GAP, BETWEEN = 74, 62, 30
"""The height of a panel, the space above it, and the space between columns, in pixels."""


def draw_quantization_histograms(study: StudyTables) -> Figure | None:
    """Draw the distributions of values: a row of panels per layer, a column per quantity.

    The y axis, shares of values in a bin of levels, is logarithmic: most are near zero.
    """
    table = study.quantization_histograms
    layers = table["layer"].unique()
    if not len(layers):
        return None
    high, wide = len(layers) * (ROW + GAP) + 38, (style.WIDTH - 32 - 2 * BETWEEN) / 3
    figure = Figure(figsize=(style.WIDTH / style.PIXELS, high / style.PIXELS))
    for (name, quantity), rows in table.groupby(["layer", "quantity"], sort=False):
        down, across = list(layers).index(name), list(QUANTITIES).index(str(quantity))
        left, top = 32 + across * (wide + BETWEEN), (down + 1) * (ROW + GAP)
        place = (left / style.WIDTH, 1 - top / high, wide / style.WIDTH, ROW / high)
        axes = figure.add_axes(place)
        _draw_histogram(axes, rows)
        words = f"{QUANTITIES[str(quantity)]}\n1 level = {1 / rows['scale'].iloc[0]:.2g}"
        axes.set_title(words, fontsize=11, fontweight="normal", pad=3)
        if across == 0:
            axes.annotate(
                str(name), (0, 1), (-32, 34), "axes fraction", "offset points", fontweight="bold"
            )
    return figure


def _draw_histogram(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw the shares of values in bins of `LEVELS_PER_BIN` levels, and the limits of int8."""
    quantity, scale = rows[["quantity", "scale"]].iloc[0]
    for values, look in LOOKS.items():
        own = rows[rows["values"] == values]
        levels = (own["bin_low"] * scale + 0.5).round()
        first = levels.min() // LEVELS_PER_BIN * LEVELS_PER_BIN
        edges = np.arange(first, levels.max() + LEVELS_PER_BIN + 1, LEVELS_PER_BIN) - 0.5
        shares, _ = np.histogram(levels, edges, weights=own["count"] / own["count"].sum())
        axes.stairs(shares, edges / scale, **look)
    for limit in LIMITS[quantity]:
        axes.axvline(limit / scale, color=style.SOFT, linestyle=":", linewidth=1)
    axes.set(yscale="log", ylim=(None, 1))
    axes.tick_params(labelsize=11)
    axes.yaxis.set_major_locator(LogLocator(numticks=3))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(_power)
    axes.xaxis.set_major_locator(MaxNLocator(2))


def _power(share: float, _: object) -> str:
    """Format a power of ten: `10⁻³`."""
    return "10" + str(round(np.log10(share))).translate(RAISED)
