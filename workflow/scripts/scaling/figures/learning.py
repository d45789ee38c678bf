"""Results of training: loss and accuracy over the global batch, accuracy over cost."""

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


COSTS = {"seconds": ("seconds of training", "s"), "joules": ("joules of the GPUs", "J")}
"""Costs of a training: the label of an axis, and the unit."""
GROUPS = ("the lab’s rate", "run to the end")
"""What trained, each in its own colour in every study."""


def draw_pareto(
    accuracy: pd.DataFrame, timing: pd.DataFrame, full: pd.DataFrame, costs: pd.DataFrame
) -> Figure | None:
    """Draw test accuracy over the cost of training in seconds and, if known, joules.

    Points are cells, whose costs are those of an epoch times the epochs, and `full` trainings to an
    accuracy, measured as a whole. The line is the Pareto front.
    """
    energy = costs[CELL_KEYS].assign(epoch_joules=3600 * costs["watt_hours_per_epoch"])
    spent = timing[[*CELL_KEYS, "epoch_seconds"]].merge(energy, on=CELL_KEYS, how="left")
    runs = _last_epochs(accuracy).rename(columns={"epoch": "epochs"})
    cells = runs.groupby(CELL_KEYS, as_index=False)[["epochs", "test_accuracy"]].mean()
    inferred = cells.merge(spent).assign(group=GROUPS[0])
    for cost in COSTS:
        inferred[cost] = inferred["epochs"] * inferred[f"epoch_{cost}"]
    run = full.rename(columns={"training_seconds": "seconds"}).assign(group=GROUPS[-1])
    points = pd.concat([inferred, run], ignore_index=True).dropna(subset=["test_accuracy"])
    known = [cost for cost in COSTS if points[cost].notna().any()]
    if not known:
        return None
    points["percent"] = 100 * points["test_accuracy"]
    points["name"] = [f"{fmt.cell_name(row)}, {row.group}" for row in points.itertuples()]
    figure, panels = style.panels([f"Test accuracy over {cost}" for cost in known], y="%")
    for axes, cost in zip(panels, known, strict=True):
        shown = points.dropna(subset=[cost]).sort_values(cost)
        amounts = [f", {fmt.significant(value)} {COSTS[cost][1]}" for value in shown[cost]]
        shown = shown.assign(name=shown["name"] + amounts)
        rows = [shown[shown["group"] == name] for name in GROUPS]
        style.lines(axes, rows, cost, "percent", "accuracy", linestyle="none")
        best = shown[shown["percent"] > shown["percent"].cummax().shift(fill_value=-1)]
        axes.step(best[cost], best["percent"], where="post", color=style.GREY, zorder=1)
        style.log_axis(axes.xaxis, shown[cost].min(), shown[cost].max())
        axes.set_xlabel(COSTS[cost][0])
    there = [
        style.line_handle(name, **style.numbered(index), linestyle="none")
        for index, name in enumerate(GROUPS)
        if name in set(points["group"])
    ]
    style.legend(figure, [], *there, style.line_handle("best", color=style.GREY))
    return figure
