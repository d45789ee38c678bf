"""Scaling over batch size and GPUs: times, rates, memory, efficiency."""

import pandas as pd
from matplotlib.figure import Figure

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.figures import style

PER_GPU = "batch size per GPU"
LOG_FROM_RATIO = 8
"""The axis is logarithmic if the largest value is at least this many times the smallest."""
CAPPED = 0.05
"""A cell counts as power-limited from this share of time at the power limit."""


def draw_epoch_time(timing: pd.DataFrame) -> Figure | None:
    """Draw seconds per epoch over the batch size."""
    return _by_recipe(timing, "epoch_seconds", "timing", "seconds per epoch")


def draw_rate(utilization: pd.DataFrame) -> Figure | None:
    """Draw TFLOP/s per GPU over the batch size, and the measured peak of the recipe's precision.

    Open markers are cells limited by the power limit.
    """
    table = utilization.assign(limit=utilization["peak_flops_per_second"] / 1e12)
    per_image = table["flops_per_second_per_gpu"] / table["images_per_second"] / 1e12
    for end in ("", "_min", "_max"):
        table[f"rate{end}"] = per_image * table[f"images_per_second{end}"]
    table["limit_name"] = "peak of a cool GPU, " + table["precision"]
    table["open"] = table["power_capped_share"] > CAPPED
    return _by_recipe(table, "rate", "utilization", "TFLOP/s a GPU")


def draw_memory(costs: pd.DataFrame, timing: pd.DataFrame) -> Figure | None:
    """Draw peak memory over the batch size, and the capacity; open markers ran out of memory."""
    table = costs.merge(timing[[*CELL_KEYS, "status"]], on=CELL_KEYS)
    table["limit"] = table["memory_capacity_bytes"].max() / 1e9
    table["memory"] = table["peak_memory_bytes"] / 1e9
    table = table.assign(limit_name="a GPU has", open=table["status"] != "ok")
    return _by_recipe(table, "memory", "costs", "peak memory, GB")


def _by_recipe(table: pd.DataFrame, column: str, source: str, label: str) -> Figure | None:
    """Draw a panel for each recipe: `column` over the batch size, a line per strategy and N.

    One GPU has one line, as all strategies share it. A `limit` of the rows is a dashed line.
    """
    known = table[table[column].notna()]
    if known.empty:
        return None
    gpus = known["gpus"].map(fmt.gpus)
    known = known.assign(line=gpus.where(known["gpus"] == 1, known["strategy"] + " · " + gpus))
    known = known.drop_duplicates(["recipe", "line", "batch_size"])
    known = known.sort_values(["gpus", "strategy", "batch_size"])
    lines = list(known["line"].unique())
    recipes = sorted(known["recipe"].unique())
    figure, panels = style.panels(recipes, PER_GPU, label)
    ends = known[[name for name in known if name in (column, f"{column}_max", "limit")]].max()
    for axes, recipe in zip(panels, recipes, strict=True):
        rows = known[known["recipe"] == recipe]
        groups = [rows[rows["line"] == line] for line in lines]
        style.lines(axes, groups, "batch_size", column, source, step=1.06)
        style.batch_axis(axes, sorted(table["batch_size"].unique()))
        if ends.max() > LOG_FROM_RATIO * known[column].min():
            lowest = known[column].min() / 1.25
            style.log2_axis(axes.yaxis, style.POWERS, (lowest, ends.max() * 1.5))
        else:
            axes.set_ylim(0, ends.max() * 1.15)
        if "limit" in rows and (limit := rows["limit"].max()) > 0:
            words = f"{rows['limit_name'].iloc[0]}: {fmt.significant(limit)}"
            axes.axhline(limit, **style.IDEAL)
            axes.annotate(
                words, (0, limit), (3, 1), axes.get_yaxis_transform(), "offset points", size=7
            )
    style.legend(figure, lines)
    return figure


def draw_speedup(speedup: pd.DataFrame) -> Figure | None:
    """Draw efficiency over batch size, a panel for each N; from three N on also speedup over N.

    A line for each recipe and strategy; speedup over N is for the batch size with the best scaling.
    """
    known = speedup[(speedup["gpus"] > 1) & speedup["speedup"].notna()]
    if known.empty:
        return None
    counts = sorted(known["gpus"].unique())
    ends = {f"efficiency_{end}": known[f"speedup_{end}"] / known["gpus"] for end in ("min", "max")}
    known = known.assign(**ends)
    groups = style.by_configuration(known.sort_values("batch_size", kind="stable"))
    titles = [f"Efficiency on {fmt.gpus(gpus)}" for gpus in counts]
    over_gpus = ["Speedup at the best batch size"] if len(counts) > 1 else []
    figure, panels = style.panels([*titles, *over_gpus], PER_GPU, "speedup / N")
    for axes, gpus in zip(panels, counts, strict=False):
        axes.axhline(1, **style.IDEAL)
        cells = [rows[rows["gpus"] == gpus] for rows in groups.values()]
        style.lines(axes, cells, "batch_size", "efficiency", "speedup", step=1.06)
        style.batch_axis(axes, sorted(known["batch_size"].unique()))
        axes.set_ylim(0, max(1.1, 1.05 * known["efficiency_max"].max()))
    for axes in panels[len(counts) :]:
        axes.plot([1, *counts], [1, *counts], **style.IDEAL)
        rows = groups.values()
        best = [cells.loc[cells.groupby("gpus")["speedup"].idxmax()] for cells in rows]
        style.lines(axes, best, "gpus", "speedup", "speedup")
        style.log2_axis(axes.xaxis, [1, *counts])
        lowest, highest = known["speedup_min"].min(), known["speedup_max"].max()
        limits = min(1, lowest) / 1.15, 1.15 * max(counts[-1], highest)
        style.log2_axis(axes.yaxis, style.POWERS, limits)
        axes.set(xlabel="GPUs", ylabel="speedup over 1 GPU")
    ideal = style.line_handle("ideal", **style.IDEAL)
    style.legend(figure, groups, ideal)
    return figure


def draw_communication(communication: pd.DataFrame) -> Figure | None:
    """Draw every estimate of communication as a share of its epoch, on the most GPUs.

    A panel for each recipe and strategy, a dot for each cell and estimate.
    """
    known = communication[communication["communication_seconds"].notna()]
    if known.empty:
        return None
    known = known[known["gpus"] == known["gpus"].max()]
    share = 100 * known["communication_seconds"] / known["total_seconds"]
    known = known.assign(share=share, name=known["estimate"].map(fmt.words))
    groups = style.by_configuration(known)
    estimates = list(known["name"].unique())
    x = f"{PER_GPU}, {fmt.gpus(known['gpus'].max())}"
    figure, panels = style.panels(list(groups), x, "% of the epoch")
    for axes, rows in zip(panels, groups.values(), strict=True):
        axes.axhline(0, color=style.GREY, linewidth=0.8)
        cells = [rows[rows["name"] == estimate] for estimate in estimates]
        style.lines(axes, cells, "batch_size", "share", "communication", 1.12, linestyle="none")
        style.batch_axis(axes, sorted(known["batch_size"].unique()))
    style.legend(figure, estimates, linestyle="none")
    return figure
