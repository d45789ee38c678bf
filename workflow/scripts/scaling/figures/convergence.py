"""Draw how remedies converge: accuracy against the global batch, loss against the updates."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from scaling.figures import style
from scaling.tables.experiments.best_remedy import (
    beside_the_rate,
    best,
    reference_epochs,
    without_sweep,
)

REMEDIES_A_PANEL = 5
NOTHING = "The study has no runs of remedies."


def draw_remedies(remedies: pd.DataFrame) -> Figure:
    """Draw test accuracy over the global batch: a few remedies a panel, the first in each.

    A point is the mean over the seeds of the chosen rate, its bar their range; the dashed line is
    the reference. A remedy that diverged in a seed has an open marker there.
    """
    known = remedies[remedies["test_accuracy"].notna()]
    if known.empty:
        return style.message_figure(NOTHING)
    base = str(known["remedy"].iloc[0])
    groups = _by_kind(known[known["remedy"] != base]) or {base: []}
    figure, panels, _ = style.panels(list(groups))
    batches = sorted({int(batch) for batch in known["global_batch"]})
    for axes, names in zip(panels, groups.values(), strict=True):
        for index, name in enumerate([base, *names]):
            rows = known[known["remedy"] == name].sort_values("global_batch")
            x = style.dodge(rows["global_batch"], index, len(names) + 1, step=1.06)
            colour = style.COLOURS[index - 1] if index else style.GREY
            _draw_remedy(axes, x, rows, {**style.numbered(index), "color": colour})
        for row in known[known["reference"]].itertuples():
            axes.axhline(100 * row.test_accuracy, color=style.INK, linestyle="--", linewidth=0.9)
        style.log2_axis(axes.xaxis, batches)
        axes.set_xlabel("global batch")
        axes.set_ylabel("test accuracy, %")
        axes.legend(loc="best", fontsize=7)
    return figure


def _by_kind(remedies: pd.DataFrame) -> dict[str, list[str]]:
    """Titles of panels, and their remedies: by how the rate is chosen, and how many options."""
    kinds: dict[str, list[str]] = {}
    for name, rows in remedies.groupby("remedy", sort=False):
        options = len(beside_the_rate(rows["options"].iloc[0]))
        swept = "swept rate, several options" if options > 1 else "swept rate, up to one option"
        kind = swept if (rows["rates"] > 1).any() else "rate by a rule"
        kinds.setdefault(kind, []).append(str(name))
    panels = {}
    for kind, names in kinds.items():
        count = -(-len(names) // REMEDIES_A_PANEL)
        for index in range(count):
            title = f"{kind} ({index + 1} of {count})" if count > 1 else kind
            first = index * REMEDIES_A_PANEL
            panels[title] = names[first : first + REMEDIES_A_PANEL]
    return panels


def _draw_remedy(axes: Axes, x: pd.Series, rows: pd.DataFrame, look: dict[str, Any]) -> None:
    mean, low, high = (100 * rows[f"test_accuracy{end}"] for end in ("", "_min", "_max"))
    # The mean of equal values may be a rounding error beside them.
    bars = [(mean - low).clip(lower=0), (high - mean).clip(lower=0)]
    name = rows["remedy"].iloc[0]
    axes.errorbar(x, mean, yerr=bars, label=name, linewidth=1.1, **look)
    failed = rows["diverged_seeds"] > 0
    axes.plot(x[failed], mean[failed], zorder=3, **style.open_marker(look))


def draw_loss_curves(remedies: pd.DataFrame, curves: pd.DataFrame) -> Figure:
    """Draw training loss over the updates, a panel for each global batch.

    The remedies without a sweep at their rule's rate, and the best one (by training accuracy) of
    those with one; of each the first seed. A loss that is not finite ends its line.
    """
    batches = sorted({int(batch) for batch in curves["global_batch"]})
    if not batches:
        return style.message_figure(NOTHING)
    found = [best(remedies, batch) for batch in batches]
    shown = {row.global_batch: [str(row.remedy)] for row in found if row is not None}
    names = without_sweep(curves[~curves["remedy"].isin(_longer(remedies))])
    figure, panels, _ = style.panels([f"global batch {batch}" for batch in batches])
    for axes, batch in zip(panels, batches, strict=True):
        lines = [*names, *shown.get(batch, [])]
        for index, name in enumerate(dict.fromkeys(lines)):
            runs = curves[(curves["global_batch"] == batch) & (curves["remedy"] == name)]
            run = runs[runs["chosen"]]
            if run.empty:
                continue
            label = f"{name}, rate {run['learning_rate'].iloc[0]:g}"
            look = {**style.numbered(index), "marker": "." if len(run) < 50 else None}
            axes.plot(run["update"], run["train_loss"], label=label, linewidth=1.1, **look)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(LogFormatter())
        axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.5, 0.5)))
        axes.set_xlabel("update")
        axes.set_ylabel("training loss")
        axes.legend(loc="best", fontsize=7)
    return figure


def _longer(remedies: pd.DataFrame) -> list[str]:
    """List the remedies that train for more epochs than others."""
    longer = remedies["planned_epochs"] > reference_epochs(remedies)
    return list(remedies[longer]["remedy"].unique())
