"""Draw what fewer bits cost: accuracy against packed size, a line for each method."""

import argparse
from collections.abc import Callable
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from scaling.core.errors import run_script
from scaling.figures import style as figures
from scaling.tables import schema
from scaling.tables.experiments.quantization_choices import bits, low_bits
from scaling.tables.experiments.quantization_cost import cost

PANELS: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "Fewer bits of weights, activations of 8": lambda rows: rows["activation_bits"] == 8,
    "Fewer bits of both": lambda rows: rows["activation_bits"] == rows["weight_bits"],
    "Fewer bits of activations, weights of 8": lambda rows: rows["weight_bits"] == 8,
}
LINEAR_POINTS = 1.0
"""Differences up to this are drawn to scale, larger ones on a logarithmic axis."""
LEGEND_CHARACTERS = 95
TICKS = [-50, -20, -10, -5, -2, -1, -0.5, 0, 0.5, 1]


def draw(quantization: pd.DataFrame) -> Figure:
    """A panel for each way to take bits away, a line for each method, a point for each variant.

    A point is the mean over the seeds of the difference to float32, its bar two standard errors;
    x is the packed size, or where it stays the same the bits of activations.
    """
    low = low_bits(quantization)
    shown = {title: low[chosen(low)] for title, chosen in PANELS.items()}
    fewer = {
        title: rows
        for title, rows in shown.items()
        if ((rows["weight_bits"] < 8) | (rows["activation_bits"] < 8)).any()
    }
    if not fewer:
        return figures.message_figure("No variant of this study has fewer than 8 bits.")
    methods = list(low["method"].unique())
    figure, upper, _ = figures.panels(list(fewer))
    for axes, (title, rows) in zip(upper, fewer.items(), strict=True):
        by_size = not title.startswith("Fewer bits of activations")
        points = []
        for index, method in enumerate(methods):
            own = rows[rows["method"] == method]
            if len(own):
                points += _line(axes, own, by_size, _style(index))
        _name_lowest(axes, points)
        axes.axhline(0, color=figures.GREY, linewidth=1, linestyle="--")
        axes.set_yscale("symlog", linthresh=LINEAR_POINTS)
        axes.yaxis.set_major_locator(FixedLocator(TICKS))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−"))
        )
        axes.set_ylabel("points to float32")
        axes.set_xlabel("packed size, kB" if by_size else "bits of activations")
    handles = [
        figures.line_handle(fill(method, LEGEND_CHARACTERS), **_style(index))
        for index, method in enumerate(methods)
    ]
    handles.append(figures.line_handle("float32", color=figures.GREY, linestyle="--", linewidth=1))
    figure.legend(handles=handles, loc="outside upper left", ncols=1)
    return figure


def _style(index: int) -> dict[str, Any]:
    return {
        "color": figures.GPU_COLOURS[index % len(figures.GPU_COLOURS)],
        "marker": figures.MARKERS[index % len(figures.MARKERS)],
    }


def _line(
    axes: Axes, rows: pd.DataFrame, by_size: bool, style: dict[str, Any]
) -> list[tuple[float, float, str]]:
    """Draw a method's variants; x, y and bits of each point."""
    points = []
    for _, same in rows.groupby("stage", sort=False):
        found, row = cost(same), next(same.itertuples())
        x = same["packed_bytes"].mean() / 1000 if by_size else row.activation_bits
        points.append((x, found.difference_points, 2 * found.standard_error_points, bits(row)))
    x, y, errors, names = zip(*sorted(points), strict=True)
    axes.errorbar(x, y, yerr=np.nan_to_num(errors), **style)
    return list(zip(x, y, names, strict=True))


def _name_lowest(axes: Axes, points: list[tuple[float, float, str]]) -> None:
    """Write the bits beside the lowest of the points that share them."""
    lowest = {name: (x, y) for x, y, name in sorted(points, key=lambda point: -point[1])}
    for name, place in lowest.items():
        axes.annotate(
            name, place, (4, -9), textcoords="offset points", fontsize=6.5, color=figures.GREY
        )


def main(argv: list[str] | None = None) -> None:
    """Write the figure as SVG."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quantization", type=Path, required=True, help="quantization.csv")
    parser.add_argument("--output", type=Path, required=True, help="the SVG file to write")
    arguments = parser.parse_args(argv)
    quantization = schema.read("quantization", arguments.quantization)
    with figures.style("quantization-sizes"):
        figures.save(draw(quantization), arguments.output)


if __name__ == "__main__":
    run_script(main)
