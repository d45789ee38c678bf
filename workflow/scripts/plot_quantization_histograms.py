"""Draw how every layer's weights and activations are distributed, as floats and as int8."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullLocator

from scaling.core.errors import UserError, run_script
from scaling.figures import style
from scaling.quantization.histograms import Histogram, LayerHistogram
from scaling.tables.experiments.quantization_record import read_document

COLUMNS = {
    "weights": "weights",
    "before_relu": "activations before ReLU",
    "after_relu": "activations after ReLU",
}
STEPS_PER_BIN = 4
"""Where there are 8 bits; with fewer, each step has a bin."""
INT8 = [-128, 127]
ROW_INCHES = 1.75


def draw(document: dict[str, Any]) -> Figure:
    """One row of panels per layer, one column per kind of value, from a record with histograms.

    The y axis is the share of values in a bin of 4 integer steps (one, below 8 bits), logarithmic,
    as most activations lie near zero; the x axis is the float value, for integers step / scale.
    """
    if "histograms" not in document:
        raise UserError(
            f"the record of {document['variant']} has no histograms; make it with --histograms"
        )
    found: dict[tuple[str, str], LayerHistogram] = {
        (entry["layer"], entry["quantity"]): entry for entry in document["histograms"]
    }
    rows = document["layers"]
    figure = Figure(figsize=(10, ROW_INCHES * len(rows) + 0.6), layout="constrained")
    grid = figure.subplots(len(rows), len(COLUMNS), squeeze=False)
    for layer, row in zip(rows, grid, strict=True):
        name = layer["layer"]
        for quantity, axes in zip(COLUMNS, row, strict=True):
            entry = found.get((name, quantity))
            if entry is None:
                axes.set_axis_off()
                axes.text(0.5, 0.5, "no ReLU after this layer", ha="center", color=style.GREY)
            else:
                _draw_panel(axes, entry, *_steps(layer, quantity))
        row[0].set_ylabel(f"{name}\nshare of values")
    for axes, title in zip(grid[0], COLUMNS.values(), strict=True):
        axes.set_title(title)
    handles = [
        Patch(color=style.SKY, alpha=0.5, label="quantized, step / scale"),
        style.line_handle("float32", color=style.INK, linewidth=1),
        style.line_handle("first and last step", color=style.VERMILLION, linestyle=":"),
    ]
    stage = document.get("variant", "weights+activations+bias")
    style.legend(figure, handles)
    whose = f"{stage}, seed {document['seed']}"
    figure.suptitle(whose, x=0.99, ha="right", fontsize=9, color=style.GREY)
    return figure


def _steps(layer: dict[str, Any], quantity: str) -> tuple[int, int]:
    """The first and the last step that a layer's values can have."""
    if quantity == "weights":
        last = 2 ** (layer.get("weight_bits", 8) - 1) - 1
        return -last, last
    # Before there were variants, all was int8.
    first, last = layer.get("output_steps") or INT8
    return first, last


def _draw_panel(axes: Axes, entry: LayerHistogram, first: int, last: int) -> None:
    scale = entry["scale"]
    width = STEPS_PER_BIN if last - first > 128 else 1
    shares, edges = _shares(entry["int8"], scale, width)
    axes.stairs(shares, edges, fill=True, color=style.SKY, alpha=0.5)
    shares, edges = _shares(entry["float"], scale, width)
    axes.stairs(shares, edges, baseline=None, color=style.INK, linewidth=1)
    limits = (first - 0.5, last + 0.5) if entry["quantity"] != "after_relu" else (last + 0.5,)
    for limit in limits:
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


def _shares(histogram: Histogram, scale: float, width: int) -> tuple[np.ndarray[Any, Any], Any]:
    """The histogram by bins of `width` steps from multiples of it: shares [k], edges [k + 1]."""
    steps = np.rint(np.array(histogram["bin_edges"][:-1]) * scale + 0.5).astype(int)
    groups = steps // width
    counts = np.bincount(groups - groups[0], weights=histogram["counts"])
    edges = (np.arange(groups[0], groups[-1] + 2) * width - 0.5) / scale
    return counts / counts.sum(), edges


def main(argv: list[str] | None = None) -> None:
    """Write the figure as SVG."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--record",
        type=Path,
        nargs="?",
        help="what quantize_evaluate.py --histograms wrote; none without Part B",
    )
    parser.add_argument("--output", type=Path, required=True, help="the SVG file to write")
    arguments = parser.parse_args(argv)
    with style.style("quantization-histograms"):
        style.save(
            draw(read_document(arguments.record))
            if arguments.record
            else style.message_figure("the study has no Part B"),
            arguments.output,
        )


if __name__ == "__main__":
    run_script(main)
