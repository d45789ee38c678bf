"""Draw training loss and accuracy over the epochs, one line for each batch size and GPU count."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scaling.core import numbers as fmt
from scaling.figures import style
from scaling.tables import schema

QUANTITIES = {"training loss": ("train_loss", 1), "accuracy, %": ("train_accuracy", 100)}
"""What a recipe and strategy has a panel of: the column, and what to multiply it by."""


def draw_learning(accuracy: pd.DataFrame) -> Figure:
    """Draw two panels, loss and accuracy, for each recipe and strategy.

    A line is the mean over the seeds, its band reaches from their minimum to their maximum; an open
    marker is the accuracy on the test set, measured after the last epoch.
    """
    groups = schema.by_configuration(accuracy)
    if not accuracy["epoch"].notna().any():
        return style.message_figure("No run of the study completed an epoch.")
    batches = style.batch_styles(sorted({int(size) for size in accuracy["batch_size"]}))
    counts = sorted({int(gpus) for gpus in accuracy["gpus"]})
    lines = dict(zip(counts, style.LINE_STYLES * len(counts), strict=False))
    figure, panels = style.panels(
        [f"{recipe} · {strategy} · {name}" for recipe, strategy, _ in groups for name in QUANTITIES]
    )
    epochs = range(1, int(accuracy["epoch"].max()) + 1)
    for index, (_, _, rows) in enumerate(groups):
        loss, share = panels[2 * index : 2 * index + 2]
        for (gpus, batch), runs in rows.groupby(["gpus", "batch_size"]):
            look = {"color": batches[batch]["color"], "linestyle": lines[gpus]}
            for axes, (column, factor) in zip((loss, share), QUANTITIES.values(), strict=True):
                _draw_band(axes, runs, column, factor, look)
            _draw_test(share, runs, batches[batch])
        for axes in (loss, share):
            axes.set_xticks(epochs)
            axes.set_xlabel("epoch")
    handles = [
        style.line_handle(f"b = {size}", color=look["color"]) for size, look in batches.items()
    ]
    handles += [
        style.line_handle(fmt.gpus(gpus), color=style.INK, linestyle=line)
        for gpus, line in lines.items()
    ]
    if accuracy["test_accuracy"].notna().any():
        test = style.open_marker({"color": style.INK, "marker": "o"})
        handles.append(style.line_handle("test set", **test))
    # The batch sizes fill the first row, what the lines mean the second.
    style.legend(figure, handles, longest_row=max(4, len(batches)))
    return figure


def _draw_band(
    axes: Axes, runs: pd.DataFrame, column: str, factor: float, look: dict[str, Any]
) -> None:
    """Draw the seeds' mean of `column` times `factor`, and a band from minimum to maximum."""
    known = runs[runs[column].notna()]
    if known.empty:
        return
    seeds = (known.set_index("epoch")[column] * factor).groupby("epoch").agg(["mean", "min", "max"])
    marker = "." if len(seeds) == 1 else None
    axes.plot(seeds.index, seeds["mean"], marker=marker, linewidth=1.3, **look)
    axes.fill_between(seeds.index, seeds["min"], seeds["max"], color=look["color"], alpha=0.15)


def _draw_test(axes: Axes, runs: pd.DataFrame, look: dict[str, Any]) -> None:
    known = runs[runs["test_accuracy"].notna()]
    if len(known):
        place = known["epoch"].max(), 100 * known["test_accuracy"].mean()
        axes.plot(*place, **style.open_marker(look))
