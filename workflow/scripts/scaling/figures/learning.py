"""Results of training: loss and accuracy over the global batch."""

import pandas as pd
from matplotlib.figure import Figure

from scaling.core.grid import CELL_KEYS
from scaling.figures import style

QUANTITIES = {
    "Training loss after the last epoch": ("train_loss", 1),
    "Test accuracy, %": ("test_accuracy", 100),
}


def draw_learning(accuracy: pd.DataFrame) -> Figure | None:
    """Draw a panel for each metric over the global batch, a line for each recipe and strategy.

    A point is the mean over the runs of a global batch, its bar their range.
    """
    last = _last_epochs(accuracy)
    if last.empty:
        return None
    last["global_batch"] = last["gpus"] * last["batch_size"]
    groups = style.by_configuration(last)
    figure, panels = style.panels(list(QUANTITIES), "global batch")
    for axes, (column, factor) in zip(panels, QUANTITIES.values(), strict=True):
        means = []
        for name, rows in groups.items():
            values = (factor * rows[column].dropna()).groupby(rows["global_batch"])
            seeds = values.agg(value="mean", value_min="min", value_max="max").reset_index()
            sizes = seeds["global_batch"].astype(str)
            means.append(seeds.assign(name=f"{name}, global batch " + sizes))
        style.lines(axes, means, "global_batch", "value", "accuracy", step=1.04)
        style.batch_axis(axes, sorted(last["global_batch"].unique()))
    style.legend(figure, groups)
    return figure


def _last_epochs(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Return the row of each run's last epoch."""
    known = accuracy[accuracy["epoch"].notna()].sort_values("epoch", kind="stable")
    return known.groupby([*CELL_KEYS, "seed"], sort=False).tail(1).copy()
