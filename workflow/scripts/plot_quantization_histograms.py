"""Draw how every layer's weights and activations are distributed, as floats and as int8."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullLocator

from scaling import figures
from scaling.errors import UserError, run_script
from scaling.quantization_histograms import Histogram, LayerHistogram
from scaling.quantization_record import read_document

COLUMNS = {
    "weights": "weights",
    "before_relu": "activations before ReLU",
    "after_relu": "activations after ReLU",
}
STEPS_PER_BIN = 4
ROW_INCHES = 1.75


def draw(document: dict[str, Any]) -> Figure:
    """One row of panels per layer, one column per kind of value, from a record with histograms.

    The y axis is the share of values in a bin of 4 integer steps, logarithmic, as most activations
    lie near zero; the x axis is the float value, for int8 step / scale.
    """
    if "histograms" not in document:
        raise UserError(
            f"the record of {document['variant']} has no histograms; make it with --histograms"
        )
    found: dict[tuple[str, str], LayerHistogram] = {
        (entry["layer"], entry["quantity"]): entry for entry in document["histograms"]
    }
    names = [row["layer"] for row in document["layers"]]
    figure = Figure(figsize=(10, ROW_INCHES * len(names) + 0.6), layout="constrained")
    grid = figure.subplots(len(names), len(COLUMNS), squeeze=False)
    for name, row in zip(names, grid, strict=True):
        for quantity, axes in zip(COLUMNS, row, strict=True):
            entry = found.get((name, quantity))
            if entry is None:
                axes.set_axis_off()
                axes.text(0.5, 0.5, "no ReLU after this layer", ha="center", color=figures.GREY)
            else:
                _draw_panel(axes, entry)
        row[0].set_ylabel(f"{name}\nshare of values")
    for axes, title in zip(grid[0], COLUMNS.values(), strict=True):
        axes.set_title(title)
    handles = [
        Patch(color=figures.SKY, alpha=0.5, label="int8, step / scale"),
        figures.line_handle("float32", color=figures.INK, linewidth=1),
        figures.line_handle("limits of int8", color=figures.VERMILLION, linestyle=":"),
    ]
    figures.legend(figure, handles)
    return figure


def _draw_panel(axes: Axes, entry: LayerHistogram) -> None:
    scale = entry["scale"]
    shares, edges = _shares(entry["int8"], scale)
    axes.stairs(shares, edges, fill=True, color=figures.SKY, alpha=0.5)
    shares, edges = _shares(entry["float"], scale)
    axes.stairs(shares, edges, baseline=None, color=figures.INK, linewidth=1)
    limits = (-128.5, 127.5) if entry["quantity"] != "after_relu" else (127.5,)
    for limit in limits:
        axes.axvline(limit / scale, color=figures.VERMILLION, linestyle=":", linewidth=1)
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
        color=figures.INK,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
    )


def _shares(histogram: Histogram, scale: float) -> tuple[np.ndarray[Any, Any], Any]:
    """The histogram in bins of 4 steps that start at multiples of 4: shares [k], edges [k + 1]."""
    steps = np.rint(np.array(histogram["bin_edges"][:-1]) * scale + 0.5).astype(int)
    groups = steps // STEPS_PER_BIN
    counts = np.bincount(groups - groups[0], weights=histogram["counts"])
    edges = (np.arange(groups[0], groups[-1] + 2) * STEPS_PER_BIN - 0.5) / scale
    return counts / counts.sum(), edges


def main(argv: list[str] | None = None) -> None:
    """Write the figure as SVG."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--record", type=Path, required=True, help="what quantize_evaluate.py --histograms wrote"
    )
    parser.add_argument("--output", type=Path, required=True, help="the SVG file to write")
    arguments = parser.parse_args(argv)
    with figures.style("quantization-histograms"):
        figures.save(draw(read_document(arguments.record)), arguments.output)


if __name__ == "__main__":
    run_script(main)
