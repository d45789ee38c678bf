"""What changes with the batch size and GPUs: times, communication, bandwidth, accuracy."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.figures import style
from scaling.tables.schema import rows_of

FAINT = "#b8b8b8"
QUANTITIES = {
    "Training loss, last epoch": ("train_loss", 1),
    "Test accuracy, %": ("test_accuracy", 100),
}
PER_GPU = "batch size per GPU"
LOG_FROM_RATIO = 8
"""The axis is logarithmic if the largest value is at least this many times the smallest."""


def draw_epoch_time(timing: pd.DataFrame) -> Figure | None:
    """Draw seconds per epoch over batch size: a panel for each recipe, a line per strategy, N."""
    known = timing[timing["epoch_seconds"].notna()].sort_values("batch_size", kind="stable")
    if known.empty:
        return None
    several = known[known["gpus"] > 1]
    configurations, counts = list(style.by_configuration(several)), sorted(several["gpus"].unique())
    recipes, looks = sorted(known["recipe"].unique()), dict[str, dict[str, Any]]()
    figure, panels = style.panels(recipes, PER_GPU, "seconds per epoch")
    for (gpus, recipe, strategy), rows in known.groupby(["gpus", "recipe", "strategy"]):
        name, look = "1 GPU", {"color": style.INK, "marker": "X"}
        if strategy:
            name = f"{recipe} · {strategy}"
            look = style.numbered(configurations.index(name))
            look |= {"linestyle": style.DASHES[counts.index(gpus)]}
            name += f" · {fmt.gpus(rows['gpus'].iloc[0])}" * (len(counts) > 1)
        looks[name] = look
        style.lines(panels[recipes.index(recipe)], [rows], "batch_size", "epoch_seconds", **look)
    lowest = known["epoch_seconds"].min()
    highest = known[["epoch_seconds", "epoch_seconds_high"]].max().max()
    for axes in panels:
        style.batch_axis(axes, timing["batch_size"])
        if highest > LOG_FROM_RATIO * lowest:
            style.log2_axis(axes.yaxis, style.POWERS, (lowest / 1.25, highest * 1.5))
        else:
            axes.set_ylim(0, highest * 1.15)
    style.legend(figure, [], *(style.line_handle(name, **look) for name, look in looks.items()))
    return figure


def draw_speedup(speedup: pd.DataFrame) -> Figure | None:
    """Draw efficiency over batch size on the most GPUs; from three N on also the best speedup."""
    known = speedup[(speedup["gpus"] > 1) & speedup["speedup"].notna()].copy()
    if known.empty:
        return None
    counts = sorted(known["gpus"].unique())
    groups = style.by_configuration(known.sort_values("batch_size", kind="stable"))
    titles = [f"Efficiency on {fmt.gpus(counts[-1])}", "At the best batch size"]
    figure, (first, *others) = style.panels(titles[: len(counts)], PER_GPU, "speedup / N")
    first.axhline(1, **style.IDEAL)
    cells = [rows[rows["gpus"] == counts[-1]] for rows in groups.values()]
    style.lines(first, cells, "batch_size", "efficiency")
    style.batch_axis(first, known["batch_size"])
    first.set_ylim(0, max(1.1, 1.05 * known[["efficiency", "efficiency_high"]].max().max()))
    for axes in others:
        axes.plot([1, *counts], [1, *counts], **style.IDEAL)
        rows = groups.values()
        best = [cells.loc[cells.groupby("gpus")["speedup"].idxmax()] for cells in rows]
        style.lines(axes, best, "gpus", "speedup")
        style.log2_axis(axes.xaxis, [1, *counts])
        every = known[["speedup", "speedup_low", "speedup_high"]]
        ends = min(1, every.min().min()), max(counts[-1], every.max().max())
        style.log2_axis(axes.yaxis, style.POWERS, (ends[0] / 1.15, ends[1] * 1.15))
        axes.set(xlabel="GPUs", ylabel="speedup over 1 GPU")
    style.legend(figure, groups, style.line_handle("ideal", **style.IDEAL))
    return figure


def draw_communication(communication: pd.DataFrame) -> Figure | None:
    """Draw the delay by the exchange over batch size on the most GPUs, as a share of the epoch."""
    known = communication[communication["delay_seconds"].notna()]
    if known.empty:
        return None
    known = known[known["gpus"] == known["gpus"].max()].sort_values("batch_size", kind="stable")
    for end in ("", "_low", "_high"):
        share = 100 * known[f"delay_seconds{end}"] / known["epoch_seconds"]
        known = known.assign(**{f"share{end}": share})
    groups = style.by_configuration(known)
    title = f"Delay by the exchange on {fmt.gpus(known['gpus'].max())}"
    figure, (axes,) = style.panels([title], PER_GPU, "% of the epoch")
    axes.axhline(0, color=style.GREY, linewidth=0.8)
    style.lines(axes, groups.values(), "batch_size", "share")
    style.batch_axis(axes, known["batch_size"])
    style.legend(figure, groups)
    return figure


def draw_step_classes(step_classes: pd.DataFrame) -> Figure | None:
    """Draw the classes of a step's kernels as shares of it, and the least of each, in full."""
    if step_classes.empty:
        return None
    known = step_classes.sort_values(["gpus", "batch_size"], kind="stable")
    many = known["recipe"] + " · " + known["strategy"] + " · " + known["gpus"].map(fmt.gpus)
    known = known.assign(panel=many.where(known["gpus"] > 1, known["recipe"] + " · one GPU"))
    of_steps = known.groupby(["panel", "batch_size"])["seconds"]
    percent = 100 / of_steps.transform("sum")
    known = known.assign(share=known["seconds"] * percent, top=of_steps.cumsum() * percent)
    panels, classes = (list(known[name].unique()) for name in ("panel", "kernel_class"))
    figure, axes = style.panels(panels, PER_GPU, "% of a step")
    for row, factor in zip(rows_of(known), percent, strict=True):
        own, colour = axes[panels.index(row.panel)], style.COLOURS[classes.index(row.kernel_class)]
        place = {"x": str(row.batch_size), "bottom": row.top - row.share, "color": colour}
        own.bar(height=row.share, alpha=0.4, **place)
        own.bar(height=row.least_seconds * factor, **place)
    style.legend(figure, classes, linestyle="none")
    return figure


def draw_bandwidth(
    interconnect: pd.DataFrame, bandwidth: pd.DataFrame, costs: pd.DataFrame
) -> Figure | None:
    """Draw bus bandwidth over message size, a panel for each N: the sweep, and trainings."""
    counts = sorted(interconnect["gpus"].unique())
    if not counts:
        return None
    moved = interconnect["busbw_gb_per_s"] * interconnect["seconds"]
    ends = {"": "", "_min": "_max", "_max": "_min"}
    rates = {f"rate{to}": moved / interconnect[f"seconds{end}"] for to, end in ends.items()}
    swept = interconnect.assign(**rates).sort_values("message_bytes")
    reached = bandwidth.rename(columns={"bandwidth_gb_per_s": "rate"}).dropna(subset="rate")
    # Each cell at the sizes of the messages that it sends.
    sent = costs[[*CELL_KEYS, "message_bytes"]].dropna()
    sizes = sent.assign(message_bytes=sent["message_bytes"].str.split()).explode("message_bytes")
    reached = reached.merge(sizes.drop_duplicates().astype({"message_bytes": float}), on=CELL_KEYS)
    titles = [f"All-reduce on {fmt.gpus(gpus)}" for gpus in counts]
    figure, panels = style.panels(titles, "bytes of a message", "GB/s")
    look = {"linestyle": "none", **style.numbered(1), "markersize": 3}
    values = pd.concat([swept["rate"], reached["rate"]])
    for axes, gpus in zip(panels, counts, strict=True):
        style.lines(axes, [swept[swept["gpus"] == gpus]], "message_bytes", "rate")
        own = reached[reached["gpus"] == gpus]
        style.lines(axes, [own], "message_bytes", "rate", **look)
        style.log2_axis(axes.xaxis, [1000 * 256**power for power in range(3)])
        axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: fmt.data(size)))
        style.log2_axis(axes.yaxis, style.POWERS, (values.min() / 2, values.max() * 2))
    style.legend(figure, ["all-reduce alone", "in a step of training"], linestyle="none")
    return figure


def draw_remedies(remedies: pd.DataFrame) -> Figure | None:
    """Draw test accuracy over the global batch, a line for each technique: means and ranges.

    The first one and those that are best at a batch are coloured; the dashed line is plain SGD at
    its best rate and the smallest batch.
    """
    known = remedies[remedies["test_accuracy"].notna()]
    if known.empty:
        return None
    best = known.loc[known.groupby("global_batch")["test_accuracy"].idxmax(), "remedy"]
    named = list(dict.fromkeys([known["remedy"].iloc[0], *best]))
    figure, (axes,) = style.panels(["Test accuracy by technique"], "global batch", "%")
    percents = {f"percent{end}": 100 * known[f"test_accuracy{end}"] for end in ("", "_min", "_max")}
    drawn = known.assign(**percents).sort_values("global_batch", kind="stable")
    groups = dict(list(drawn.groupby("remedy", sort=False)))
    over, faint = ("global_batch", "percent"), dict[str, Any](color=FAINT, linewidth=0.8)
    style.lines(axes, [groups.pop(name) for name in named], *over, zorder=3)
    style.lines(axes, groups.values(), *over, **faint, marker="", elinewidth=0, capsize=0)
    for accuracy in known.loc[known["reference"].eq(True), "test_accuracy"]:
        axes.axhline(100 * accuracy, color=style.INK, linestyle="--", linewidth=0.9)
    style.log2_axis(axes.xaxis, sorted(known["global_batch"].unique()))
    others = style.line_handle("other techniques", **faint)
    style.legend(figure, [name.replace("_", " ") for name in named], others)
    return figure


def draw_learning(accuracy: pd.DataFrame) -> Figure | None:
    """Draw each metric over the global batch, a line for each recipe and strategy, with ranges."""
    known = accuracy[accuracy["epoch"].notna()].sort_values("epoch", kind="stable")
    last = known.groupby([*CELL_KEYS, "seed"], sort=False).tail(1)
    if last.empty:
        return None
    last = last.assign(global_batch=last["gpus"] * last["batch_size"])
    groups = style.by_configuration(last)
    figure, panels = style.panels(list(QUANTITIES), "global batch")
    for axes, (column, factor) in zip(panels, QUANTITIES.values(), strict=True):
        over = [(factor * rows[column]).groupby(rows["global_batch"]) for rows in groups.values()]
        seeds = [each.agg(value="mean", value_min="min", value_max="max") for each in over]
        style.lines(axes, [each.dropna().reset_index() for each in seeds], "global_batch", "value")
        style.batch_axis(axes, last["global_batch"])
    style.legend(figure, groups)
    return figure
