"""Results of training over the global batch: loss and accuracy."""

import pandas as pd
from matplotlib.figure import Figure

from scaling.core.grid import CELL_KEYS
from scaling.figures import style
from scaling.tables.schema import rows_of

FAINT = "#b8b8b8"
QUANTITIES = {
    "Training loss, last epoch": ("train_loss", 1),
    "Test accuracy, %": ("test_accuracy", 100),
}


def draw_remedies(remedies: pd.DataFrame) -> Figure | None:
    """Draw test accuracy over the global batch, a line for each technique.

    The first one (the unscaled rate) and those that are best at a batch are coloured, the rest are
    grey. A point is the mean over the seeds, its bar their range; the dashed line is plain SGD at
    its best rate and the smallest batch. Open markers have a diverged seed.
    """
    known = remedies[remedies["test_accuracy"].notna()]
    if known.empty:
        return None
    best = known.loc[known.groupby("global_batch")["test_accuracy"].idxmax(), "remedy"]
    named = list(dict.fromkeys([known["remedy"].iloc[0], *best]))
    title = "Test accuracy by technique"
    figure, (axes,) = style.panels([title], "global batch", "%")
    known = known.sort_values("global_batch").assign(
        **{f"percent{end}": 100 * known[f"test_accuracy{end}"] for end in ("", "_min", "_max")},
        name=known["remedy"] + ", global batch " + known["global_batch"].astype(str),
        open=known["diverged_seeds"] > 0,
    )
    groups = dict(list(known.groupby("remedy", sort=False)))
    over = ("global_batch", "percent", "remedies")
    style.lines(axes, [groups.pop(name) for name in named], *over, zorder=3)
    style.lines(
        axes, groups.values(), *over, color=FAINT, linewidth=0.8, marker="", elinewidth=0, capsize=0
    )
    for row in rows_of(known[known["reference"].eq(True)]):
        axes.axhline(100 * row.test_accuracy, color=style.INK, linestyle="--", linewidth=0.9)
    style.log2_axis(axes.xaxis, sorted(known["global_batch"].unique()))
    others = style.line_handle("other techniques", color=FAINT, linewidth=0.8)
    style.legend(figure, [name.replace("_", " ") for name in named], others)
    return figure


def draw_learning(accuracy: pd.DataFrame) -> Figure | None:
    """Draw a panel for each metric over the global batch, a line for each recipe and strategy.

    A point is the mean over the runs of a global batch, its bar their range.
    """
    known = accuracy[accuracy["epoch"].notna()].sort_values("epoch", kind="stable")
    last = known.groupby([*CELL_KEYS, "seed"], sort=False).tail(1).copy()
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
