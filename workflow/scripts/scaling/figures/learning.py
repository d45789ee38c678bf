"""Draw what a large batch costs after equal epochs: training loss and accuracy."""

import pandas as pd
from matplotlib.figure import Figure

from scaling.core.grid import CELL_KEYS
from scaling.figures import style
from scaling.tables import schema

QUANTITIES = {
    "Training loss after the last epoch": ("train_loss", 1),
    "Test accuracy, %": ("test_accuracy", 100),
}


def draw_learning(accuracy: pd.DataFrame) -> Figure:
    """Draw a panel for each quantity over the global batch, a line for each recipe and strategy.

    A point is a cell's mean over the seeds, its bar their range.
    """
    if not accuracy["epoch"].notna().any():
        return style.message_figure("No run of the study completed an epoch.")
    cells = [*CELL_KEYS, "seed"]
    known = accuracy[accuracy["epoch"].notna()].sort_values("epoch", kind="stable")
    last = known.groupby(cells, sort=False).tail(1)
    last = last.assign(global_batch=last["gpus"] * last["batch_size"])
    groups = schema.by_configuration(last)
    figure, panels = style.panels(list(QUANTITIES))
    for axes, (column, factor) in zip(panels, QUANTITIES.values(), strict=True):
        for index, (_, _, rows) in enumerate(groups):
            known = rows.dropna(subset=column).set_index("global_batch")[column] * factor
            seeds = known.groupby("global_batch").agg(["mean", "min", "max"])
            bars = [seeds["mean"] - seeds["min"], seeds["max"] - seeds["mean"]]
            x = style.dodge(seeds.index, index, len(groups), step=1.04)
            axes.errorbar(x, seeds["mean"], yerr=bars, **style.numbered(index))
        style.batch_axis(axes, sorted(last["global_batch"].unique()))
        axes.set_xlabel("global batch")
    handles = [
        style.line_handle(f"{recipe} · {strategy}", **style.numbered(index))
        for index, (recipe, strategy, _) in enumerate(groups)
    ]
    style.legend(figure, handles)
    return figure
