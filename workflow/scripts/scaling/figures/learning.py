"""Draw what training yields: loss and accuracy over the global batch, accuracy over its seconds."""

import pandas as pd
from matplotlib.figure import Figure

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.figures import style

QUANTITIES = {
    "Training loss after the last epoch": ("train_loss", 1),
    "Test accuracy, %": ("test_accuracy", 100),
}


def draw_learning(accuracy: pd.DataFrame) -> Figure | None:
    """Draw a panel for each quantity over the global batch, a line for each recipe and strategy.

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
    """The row of each run's last epoch."""
    known = accuracy[accuracy["epoch"].notna()].sort_values("epoch", kind="stable")
    return known.groupby([*CELL_KEYS, "seed"], sort=False).tail(1).copy()


def draw_pareto(
    accuracy: pd.DataFrame,
    timing: pd.DataFrame,
    remedies: pd.DataFrame,
    times: pd.DataFrame,
    full: pd.DataFrame,
) -> Figure | None:
    """Draw test accuracy over the seconds of training: cells, techniques, trainings to an accuracy.

    Seconds are epochs times the cell's epoch; a technique has the fastest cell of its batch. Those
    of `full` trainings were really run. The line joins what nothing else beats in both.
    """
    runs = _last_epochs(accuracy).groupby(CELL_KEYS, as_index=False)
    cells = runs[["epoch", "test_accuracy"]].mean().merge(timing, on=CELL_KEYS)
    cells["seconds"] = cells["epoch"] * cells["epoch_seconds"]
    cells["group"] = "the lab’s rate"
    keys = ["remedy", "global_batch"]
    quickest = times.sort_values("epoch_seconds").drop_duplicates(keys)
    quickest = quickest[[*keys, *CELL_KEYS, "epoch_seconds"]]
    trained = remedies[[*keys, "epochs", "test_accuracy"]].merge(quickest, on=keys)
    trained["seconds"] = trained["epochs"] * trained["epoch_seconds"]
    trained["group"] = "techniques"
    full = full.rename(columns={"training_seconds": "seconds"}).assign(group="run to the end")
    points = pd.concat([cells, trained, full], ignore_index=True)
    points = points.dropna(subset=["seconds", "test_accuracy"])
    if points.empty:
        return None
    points = points.sort_values("seconds").assign(percent=100 * points["test_accuracy"])
    points["name"] = [
        f"{fmt.cell_name(row)}, {row.group}, {fmt.seconds(row.seconds)}"
        for row in points.itertuples()
    ]
    title = "Test accuracy over seconds of training"
    figure, (axes,) = style.panels([title], "seconds of training", "%")
    groups = points.groupby("group")
    rows = [rows for _, rows in groups]
    style.lines(axes, rows, "seconds", "percent", "accuracy", linestyle="none")
    best = points[points["percent"] > points["percent"].cummax().shift(fill_value=-1)]
    axes.step(best["seconds"], best["percent"], where="post", color=style.GREY, zorder=1)
    style.log2_axis(axes.xaxis, style.POWERS)
    axes.set_xlim(points["seconds"].min() / 1.3, points["seconds"].max() * 1.3)
    front = style.line_handle("best", color=style.GREY)
    style.legend(figure, groups.groups, front, linestyle="none")
    return figure
