"""Draw the speedup over the number of GPUs, one line for each batch size, with the ideal line."""

import argparse
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from scaling import figures, result_tables
from scaling.errors import run_script


def draw(speedup: pd.DataFrame) -> Figure:
    """One panel for each recipe and strategy; a cell without a speedup is named below its panel."""
    groups = result_tables.by_configuration(speedup)
    counts = sorted({int(gpus) for gpus in speedup["gpus"]})
    if len(counts) < 2:
        return figures.message_figure("A speedup needs cells on more than one number of GPUs.")
    batches = sorted({int(size) for size in speedup["batch_size"]})
    styles = figures.batch_styles(batches)
    troubled = speedup[(speedup["status"] != "ok") | speedup["speedup"].isna()]
    strip = [batch for batch in batches if batch in set(troubled["batch_size"])]
    figure, panels, bottoms = figures.panels(
        [f"{recipe} · {strategy}" for recipe, strategy, _ in groups],
        strip_rows=len(strip),
    )
    lowest = min(1.0, speedup["speedup_min"].min())
    highest = max(float(counts[-1]), speedup["speedup_max"].max())
    for axes, bottom, (_, _, rows) in zip(panels, bottoms, groups, strict=True):
        axes.plot(counts, counts, color=figures.GREY, linestyle="--", linewidth=1, zorder=1)
        for index, batch in enumerate(batches):
            cells = rows[rows["batch_size"] == batch].sort_values("gpus")
            known = cells[cells["speedup"].notna()]
            # On one GPU the speedup is 1 by definition, whatever the spread of its time.
            several = known["gpus"] > 1
            below = (known["speedup"] - known["speedup_min"]).where(several, 0)
            above = (known["speedup_max"] - known["speedup"]).where(several, 0)
            x = figures.beside(known["gpus"], index, len(batches), step=1.02)
            axes.errorbar(x, known["speedup"], yerr=[below, above], **styles[batch])
        figures.log2_axis(axes.xaxis, counts)
        axes.set_xlim(counts[0] / 1.35, counts[-1] * 1.35)
        figures.log2_axis(axes.yaxis, [2.0**power for power in range(-6, 12)])
        axes.set_ylim(lowest / 1.15, highest * 1.15)
        marks = [
            figures.Mark(
                cell.gpus,
                strip.index(cell.batch_size),
                cell.status if cell.status != "ok" else "no 1-GPU time",
                figures.INK,
            )
            for cell in troubled[troubled.index.isin(rows.index)].itertuples()
        ]
        figures.draw_marks(bottom, marks, [f"b = {batch}" for batch in strip])
        bottom.set_xlabel("GPUs")
    for axes in panels[::2]:
        axes.set_ylabel("speedup over 1 GPU")
    handles = [figures.line_handle(f"b = {batch}", **styles[batch]) for batch in batches]
    ideal = figures.line_handle("ideal", color=figures.GREY, linestyle="--", linewidth=1)
    figures.legend(figure, [*handles, ideal])
    return figure


def main(argv: list[str] | None = None) -> None:
    """Write the figure as SVG."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speedup", type=Path, required=True, help="speedup.csv of the study")
    parser.add_argument("--output", type=Path, required=True, help="the SVG file to write")
    arguments = parser.parse_args(argv)
    speedup = result_tables.read("speedup", arguments.speedup)
    with figures.style("speedup"):
        figures.save(draw(speedup), arguments.output)


if __name__ == "__main__":
    run_script(main)
