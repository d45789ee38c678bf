"""Draw how techniques for large batches learn: accuracy over the global batch."""

import pandas as pd
from matplotlib.figure import Figure

from scaling.figures import style

FAINT = "#b8b8b8"


def draw_remedies(remedies: pd.DataFrame) -> Figure:
    """Draw test accuracy over the global batch, a line for each technique.

    The first one, the lab's rate whatever the batch, and those that are best at a batch have a
    colour, the rest are grey. A point is the mean over the seeds, its bar their range; the dashed
    line is the reference. An open marker has a seed that diverged.
    """
    known = remedies[remedies["test_accuracy"].notna()]
    if known.empty:
        return style.message_figure("The study has no runs of techniques.")
    best = known.loc[known.groupby("global_batch")["test_accuracy"].idxmax(), "remedy"]
    named = list(dict.fromkeys([known["remedy"].iloc[0], *best]))
    figure, (axes,) = style.panels(["Test accuracy, a line for each technique"])
    for name, rows in known.groupby("remedy", sort=False):
        rows = rows.sort_values("global_batch")
        index = named.index(name) if name in named else None
        look = {"color": FAINT, "linewidth": 0.8} if index is None else style.numbered(index)
        mean, low, high = (100 * rows[f"test_accuracy{end}"] for end in ("", "_min", "_max"))
        bars = None if index is None else [(mean - low).clip(lower=0), (high - mean).clip(lower=0)]
        label = None if index is None else str(name).replace("_", " ")
        axes.errorbar(
            rows["global_batch"],
            mean,
            yerr=bars,
            label=label,
            zorder=2 + (index is not None),
            **look,
        )
        failed = rows["diverged_seeds"] > 0
        hollow = style.open_marker({"marker": "o", **look})
        axes.plot(rows["global_batch"][failed], mean[failed], zorder=4, **hollow)
    for row in known[known["reference"].eq(True)].itertuples():
        axes.axhline(100 * row.test_accuracy, color=style.INK, linestyle="--", linewidth=0.9)
    style.log2_axis(axes.xaxis, sorted(known["global_batch"].unique()))
    axes.set_xlabel("global batch")
    axes.set_ylabel("%")
    axes.plot([], [], color=FAINT, linewidth=0.8, label="other techniques")
    axes.legend(loc="best", fontsize=7)
    return figure
