"""Draw speedup and efficiency over the number of GPUs, one line for each batch size."""

import argparse
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scaling.core.errors import run_script
from scaling.figures import style
from scaling.tables import schema

QUANTITIES = {"speedup": "speedup over 1 GPU", "efficiency": "efficiency: speedup / N"}
"""What a recipe and strategy has a panel of, and the name of its axis."""
IDEAL: dict[str, Any] = {"color": style.GREY, "linestyle": "--", "linewidth": 1}


def draw(speedup: pd.DataFrame) -> Figure:
    """Two panels for each recipe and strategy, speedup and efficiency.

    A cell without a speedup is named below its panels.
    """
    counts = sorted({int(gpus) for gpus in speedup["gpus"]})
    if len(counts) < 2:
        return style.message_figure("A speedup needs cells on more than one number of GPUs.")
    speedup = _with_ranges(speedup)
    groups = schema.by_configuration(speedup)
    batches = sorted({int(size) for size in speedup["batch_size"]})
    styles = style.batch_styles(batches)
    troubled = speedup[(speedup["status"] != "ok") | speedup["speedup"].isna()]
    strip = [batch for batch in batches if batch in set(troubled["batch_size"])]
    shown = [(*group, quantity) for group in groups for quantity in QUANTITIES]
    figure, panels, bottoms = style.panels(
        [f"{recipe} · {strategy}: {quantity}" for recipe, strategy, _, quantity in shown],
        strip_rows=len(strip),
    )
    for axes, bottom, (_, _, rows, quantity) in zip(panels, bottoms, shown, strict=True):
        _draw_lines(axes, rows, quantity, batches, counts)
        style.log2_axis(axes.xaxis, counts)
        axes.set_xlim(counts[0] / 1.35, counts[-1] * 1.35)
        _limit(axes, speedup, quantity, counts)
        axes.set_ylabel(QUANTITIES[quantity])
        marks = [
            style.Mark(
                cell.gpus,
                strip.index(cell.batch_size),
                cell.status if cell.status != "ok" else "no 1-GPU time",
                style.INK,
            )
            for cell in troubled[troubled.index.isin(rows.index)].itertuples()
        ]
        style.draw_marks(bottom, marks, [f"b = {batch}" for batch in strip])
        bottom.set_xlabel("GPUs")
    handles = [style.line_handle(f"b = {batch}", **styles[batch]) for batch in batches]
    style.legend(figure, [*handles, style.line_handle("ideal", **IDEAL)])
    return figure


def _with_ranges(speedup: pd.DataFrame) -> pd.DataFrame:
    """The table with the range of the efficiency, and none of either on one GPU.

    There both are 1 by definition, whatever the spread of the time.
    """
    several = speedup["gpus"] > 1
    ends = {
        f"speedup_{end}": speedup[f"speedup_{end}"].where(several, speedup["speedup"])
        for end in ("min", "max")
    }
    over_gpus = {
        name.replace("speedup", "efficiency"): values / speedup["gpus"]
        for name, values in ends.items()
    }
    return speedup.assign(**ends, **over_gpus)


def _draw_lines(
    axes: Axes, rows: pd.DataFrame, quantity: str, batches: list[int], counts: list[int]
) -> None:
    ideal = counts if quantity == "speedup" else [1] * len(counts)
    axes.plot(counts, ideal, zorder=1, **IDEAL)
    styles = style.batch_styles(batches)
    for index, batch in enumerate(batches):
        cells = rows[rows["batch_size"] == batch].sort_values("gpus")
        known = cells[cells["speedup"].notna()]
        value = known[quantity]
        errors = [value - known[f"{quantity}_min"], known[f"{quantity}_max"] - value]
        x = style.beside(known["gpus"], index, len(batches), step=1.02)
        axes.errorbar(x, value, yerr=errors, **styles[batch])


def _limit(axes: Axes, speedup: pd.DataFrame, quantity: str, counts: list[int]) -> None:
    """The same range in every panel of a quantity, with the ideal in it."""
    lowest = min(1.0, speedup[f"{quantity}_min"].min())
    if quantity == "speedup":
        highest = max(float(counts[-1]), speedup["speedup_max"].max())
        style.log2_axis(axes.yaxis, [2.0**power for power in range(-6, 12)])
        axes.set_ylim(lowest / 1.15, highest * 1.15)
    else:
        highest = max(1.0, speedup["efficiency_max"].max())
        margin = 0.06 * max(highest - lowest, 0.1)
        axes.set_ylim(lowest - margin, highest + margin)


def main(argv: list[str] | None = None) -> None:
    """Write the figure as SVG."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speedup", type=Path, required=True, help="speedup.csv of the study")
    parser.add_argument("--output", type=Path, required=True, help="the SVG file to write")
    arguments = parser.parse_args(argv)
    speedup = schema.read("speedup", arguments.speedup)
    with style.style("speedup"):
        style.save(draw(speedup), arguments.output)


if __name__ == "__main__":
    run_script(main)
