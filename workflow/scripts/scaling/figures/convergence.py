"""Effect of large batches: accuracy, and images to an accuracy, over the global batch."""

from typing import Any, cast

import pandas as pd
from matplotlib.figure import Figure

from scaling.core import numbers as fmt
from scaling.figures import style
from scaling.tables.experiments.images_to_accuracy import along_small_batches
from scaling.tables.schema import rows_of

FAINT = "#b8b8b8"


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


def draw_images_to_accuracy(images: pd.DataFrame, noise: pd.DataFrame) -> Figure | None:
    """Draw the images needed over the global batch, a line for each accuracy that was reached.

    A point is the median over the seeds, its bar their range. The band is the gradient noise scale
    during trainings at the smallest batch: the medians of its interval's ends.
    """
    known = images[images["images"] < float("inf")]
    if known.empty:
        return None
    title = "Images to a test accuracy"
    figure, (axes,) = style.panels([title], "global batch", "1,000 images")
    known = known.assign(images=known["images"] / 1000)
    per_epoch = known["images"] / known["epochs"]
    known = known.assign(
        images_min=known["epochs_min"] * per_epoch,
        images_max=(known["epochs_max"] * per_epoch).where(known["epochs_max"] < float("inf")),
        name=known["remedy"] + ", global batch " + known["global_batch"].astype(str),
    )
    groups = {fmt.percent(cast(float, key)): rows for key, rows in known.groupby("accuracy")}
    style.lines(axes, groups.values(), "global_batch", "images", "images_to_accuracy")
    ends = known[["images_min", "images_max"]]
    style.log_axis(axes.yaxis, ends.min().min(), ends.max().max())
    style.log2_axis(axes.xaxis, sorted(images["global_batch"].unique()))
    handles: list[Any] = []
    scale = along_small_batches(noise)[["noise_scale_low", "noise_scale_high"]].median()
    if scale.notna().all() and scale.iloc[0] < float("inf"):
        right = min(scale.iloc[1], 2 * images["global_batch"].max())
        axes.axvspan(scale.iloc[0], right, color=FAINT, alpha=0.4, zorder=0)
        handles = [style.line_handle("gradient noise scale", color=FAINT, linewidth=6)]
    style.legend(figure, list(groups), *handles)
    return figure
