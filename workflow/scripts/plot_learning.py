"""Draw training loss and accuracy over the epochs, one line for each batch size and GPU count."""

import argparse
import textwrap
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scaling.core.errors import run_script
from scaling.figures import style as figures
from scaling.tables import schema


def draw(accuracy: pd.DataFrame) -> Figure:
    """Two panels (loss, accuracy) for each recipe and strategy; runs that are not ok are listed.

    A line is the mean over the seeds, its band reaches from their minimum to their maximum; an open
    marker is the accuracy on the test set, measured after the last epoch.
    """
    groups = schema.by_configuration(accuracy)
    if not accuracy["epoch"].notna().any():
        return figures.message_figure("No run of the study completed an epoch.")
    batches = figures.batch_styles(sorted({int(size) for size in accuracy["batch_size"]}))
    counts = sorted({int(gpus) for gpus in accuracy["gpus"]})
    lines = dict(zip(counts, figures.LINE_STYLES * len(counts), strict=False))
    titles = [
        f"{recipe} · {strategy} · {quantity}"
        for recipe, strategy, _ in groups
        for quantity in ("training loss", "accuracy, %")
    ]
    figure, panels, _ = figures.panels(titles)
    epochs = range(1, int(accuracy["epoch"].max()) + 1)
    for index, (_, _, rows) in enumerate(groups):
        loss, share = panels[2 * index : 2 * index + 2]
        for (gpus, batch), runs in rows.groupby(["gpus", "batch_size"]):
            style = {"color": batches[batch]["color"], "linestyle": lines[gpus]}
            _draw_band(loss, runs, "train_loss", 1, style)
            _draw_band(share, runs, "train_accuracy", 100, style)
            _draw_test(share, runs, batches[batch])
        for axes in (loss, share):
            axes.set_xticks(epochs)
        loss.set_xlabel("\n".join(["epoch", *_troubles(rows)]))
        share.set_xlabel("epoch")
    handles = [
        figures.line_handle(f"b = {size}", color=style["color"]) for size, style in batches.items()
    ]
    handles += [
        figures.line_handle(figures.gpu_label(gpus), color=figures.INK, linestyle=line)
        for gpus, line in lines.items()
    ]
    if accuracy["test_accuracy"].notna().any():
        test = figures.open_marker({"color": figures.INK, "marker": "o"})
        handles.append(figures.line_handle("test set", **test))
    # The batch sizes fill the first row, what the lines mean the second.
    figures.legend(figure, handles, longest_row=max(4, len(batches)))
    return figure


def _draw_band(
    axes: Axes, runs: pd.DataFrame, column: str, factor: float, style: dict[str, Any]
) -> None:
    """The mean over the seeds of `column` times `factor`, and a band from minimum to maximum."""
    known = runs[runs[column].notna()]
    if known.empty:
        return
    seeds = (known.set_index("epoch")[column] * factor).groupby("epoch").agg(["mean", "min", "max"])
    marker = "." if len(seeds) == 1 else None
    axes.plot(seeds.index, seeds["mean"], marker=marker, linewidth=1.3, **style)
    axes.fill_between(seeds.index, seeds["min"], seeds["max"], color=style["color"], alpha=0.15)


def _draw_test(axes: Axes, runs: pd.DataFrame, style: dict[str, Any]) -> None:
    known = runs[runs["test_accuracy"].notna()]
    if len(known):
        place = known["epoch"].max(), 100 * known["test_accuracy"].mean()
        axes.plot(*place, **figures.open_marker(style))


def _troubles(rows: pd.DataFrame) -> list[str]:
    """`× diverged: 4 × 8192 (1 of 3 seeds)`, GPUs × batch size, for each status but ok."""
    cells: dict[str, list[str]] = {}
    for (gpus, batch), runs in rows.groupby(["gpus", "batch_size"]):
        status = runs.groupby("seed")["status"].first()
        for name, count in status[status != "ok"].value_counts().items():
            part = "" if count == len(status) else f" ({count} of {len(status)} seeds)"
            cells.setdefault(str(name), []).append(f"{int(gpus)} × {int(batch)}{part}")
    lines = [f"× {name}: {', '.join(found)}" for name, found in cells.items()]
    return [part for line in lines for part in textwrap.wrap(line, 58)]


def main(argv: list[str] | None = None) -> None:
    """Write the figure as SVG."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--accuracy", type=Path, required=True, help="accuracy.csv")
    parser.add_argument("--study", help="draw only the runs of this study (default: all rows)")
    parser.add_argument("--output", type=Path, required=True, help="the SVG file to write")
    arguments = parser.parse_args(argv)
    accuracy = schema.read("accuracy", arguments.accuracy)
    if arguments.study is not None:
        accuracy = schema.of_study(accuracy, arguments.study)
    with figures.style("learning"):
        figures.save(draw(accuracy), arguments.output)


if __name__ == "__main__":
    run_script(main)
