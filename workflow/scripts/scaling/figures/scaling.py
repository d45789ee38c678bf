"""Draw how a study scales over batch size and GPUs: times, rates, memory, efficiency."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.figures import style
from scaling.tables import schema

LOG_FROM_RATIO = 8
"""The ratio of the largest to the smallest value from which their axis is logarithmic."""
CAPPED = 0.05
"""The share of its time at the power limit from which a cell is marked as limited by it."""
CAPACITY = r"total capacity of ([\d.]+) GiB"
"""What a GPU's memory holds, as PyTorch says where that was too little."""


def draw_epoch_time(timing: pd.DataFrame) -> Figure | None:
    """Draw seconds per epoch over the batch size."""
    return _by_recipe(timing, "epoch_seconds", "timing", "seconds per epoch")


def draw_rate(utilization: pd.DataFrame) -> Figure | None:
    """Draw a GPU's TFLOP/s over the batch size and the measured peak of the recipe's precision.

    Cells that the power limit held back have an open marker.
    """
    table = utilization.assign(limit=utilization["peak_flops_per_second"] / 1e12)
    per_image = table["flops_per_second_per_gpu"] / table["images_per_second"] / 1e12
    for end in ("", "_min", "_max"):
        table[f"rate{end}"] = per_image * table[f"images_per_second{end}"]
    table["limit_name"] = "peak, " + table["precision"]
    table["open"] = table["power_capped_share"] > CAPPED
    return _by_recipe(table, "rate", "utilization", "TFLOP/s a GPU")


def draw_memory(costs: pd.DataFrame, timing: pd.DataFrame) -> Figure | None:
    """Draw peak memory over the batch size and what a GPU has; an open marker is too much.

    What a GPU has is known where that happened.
    """
    table = costs.merge(timing[[*CELL_KEYS, "status", "message"]], on=CELL_KEYS)
    table["limit"] = table["message"].str.extract(CAPACITY)[0].astype(float).max() * 2**30 / 1e9
    table["memory"] = table["peak_memory_bytes"] / 1e9
    table = table.assign(limit_name="a GPU has", open=table["status"] != "ok")
    return _by_recipe(table, "memory", "costs", "peak memory, GB")


def _by_recipe(table: pd.DataFrame, column: str, source: str, label: str) -> Figure | None:
    """Draw a panel for each recipe: `column` over the batch size, a line for each strategy and N.

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
    figure, panels = style.panels(recipes)
    ends = known[[name for name in known if name in (column, f"{column}_max", "limit")]].max()
    for axes, recipe in zip(panels, recipes, strict=True):
        rows = known[known["recipe"] == recipe]
        groups = [rows[rows["line"] == line] for line in lines]
        style.lines(axes, groups, "batch_size", column, source, step=1.06)
        style.batch_axis(axes, sorted(table["batch_size"].unique()))
        axes.set_xlabel("batch size per GPU")
        _limit_values(axes, known[column].min(), ends.max())
        if "limit" in rows and (limit := rows["limit"].max()) > 0:
            words = f"{rows['limit_name'].iloc[0]}: {fmt.significant(limit)}"
            axes.axhline(limit, **style.IDEAL)
            axes.annotate(
                words, (0, limit), (3, 1), axes.get_yaxis_transform(), "offset points", size=7
            )
    panels[0].set_ylabel(label)
    style.legend(figure, lines)
    return figure


def _limit_values(axes: Axes, lowest: float, highest: float) -> None:
    """Limit the y axis, logarithmic where the values span more than `LOG_FROM_RATIO`."""
    if highest > LOG_FROM_RATIO * lowest:
        style.log2_axis(axes.yaxis, style.POWERS)
        axes.set_ylim(lowest / 1.25, highest * 1.5)
    else:
        axes.set_ylim(0, highest * 1.15)


def draw_speedup(speedup: pd.DataFrame) -> Figure | None:
    """Draw efficiency over batch size, a panel for each N; for three or more N, speedup over N.

    A line for each recipe and strategy; in the speedup it is the batch size that scales best.
    """
    known = speedup[(speedup["gpus"] > 1) & speedup["speedup"].notna()]
    if known.empty:
        return None
    counts = sorted(known["gpus"].unique())
    ends = {f"efficiency_{end}": known[f"speedup_{end}"] / known["gpus"] for end in ("min", "max")}
    known = known.assign(**ends)
    configurations = schema.by_configuration(known)
    groups = [rows.sort_values("batch_size") for *_, rows in configurations]
    titles = [f"Efficiency on {fmt.gpus(gpus)}" for gpus in counts]
    over_gpus = ["Speedup at the best batch size"] if len(counts) > 1 else []
    figure, panels = style.panels([*titles, *over_gpus])
    for axes, gpus in zip(panels, counts, strict=False):
        axes.axhline(1, **style.IDEAL)
        cells = [rows[rows["gpus"] == gpus] for rows in groups]
        style.lines(axes, cells, "batch_size", "efficiency", "speedup", step=1.06)
        style.batch_axis(axes, sorted(known["batch_size"].unique()))
        axes.set_ylim(0, max(1.1, 1.05 * known["efficiency_max"].max()))
        axes.set_xlabel("batch size per GPU")
    for axes in panels[: len(counts) : 2]:
        axes.set_ylabel("speedup / N")
    for axes in panels[len(counts) :]:
        axes.plot([1, *counts], [1, *counts], **style.IDEAL)
        best = [rows.loc[rows.groupby("gpus")["speedup"].idxmax()] for rows in groups]
        style.lines(axes, best, "gpus", "speedup", "speedup")
        style.log2_axis(axes.xaxis, [1, *counts])
        style.log2_axis(axes.yaxis, style.POWERS)
        lowest, highest = known["speedup_min"].min(), known["speedup_max"].max()
        axes.set_ylim(min(1, lowest) / 1.15, 1.15 * max(counts[-1], highest))
        axes.set_xlabel("GPUs")
        axes.set_ylabel("speedup over 1 GPU")
    ideal = style.line_handle("ideal", **style.IDEAL)
    style.legend(figure, style.names(configurations), ideal)
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
    known = known.assign(share=share, name=known["estimate"].map(fmt.estimate))
    groups = schema.by_configuration(known)
    estimates = list(known["name"].unique())
    figure, panels = style.panels(style.names(groups))
    for axes, (_, _, rows) in zip(panels, groups, strict=True):
        axes.axhline(0, color=style.GREY, linewidth=0.8)
        cells = [rows[rows["name"] == estimate] for estimate in estimates]
        style.lines(axes, cells, "batch_size", "share", "communication", 1.12, linestyle="none")
        style.batch_axis(axes, sorted(known["batch_size"].unique()))
        axes.set_xlabel(f"batch size per GPU, {fmt.gpus(known['gpus'].max())}")
    for axes in panels[::2]:
        axes.set_ylabel("% of the epoch")
    style.legend(figure, estimates, linestyle="none")
    return figure


def draw_prediction(prediction: pd.DataFrame) -> Figure | None:
    """Draw the cost model's seconds over the measured ones.

    Open markers are predictions of cells that the model had not seen.
    """
    known = prediction[prediction["measured"] & prediction["predicted_seconds"].notna()]
    if known.empty:
        return None
    figure, (axes,) = style.panels(["Predicted over measured seconds"])
    groups = schema.by_configuration(known)
    rows = [rows for *_, rows in groups]
    unseen = [cells.assign(open=True) for cells in rows]
    for column, cells in (("predicted_seconds", rows), ("held_out_seconds", unseen)):
        style.lines(axes, cells, "epoch_seconds", column, "prediction", linestyle="none")
    seconds = known[["epoch_seconds", "predicted_seconds", "held_out_seconds"]].stack()
    ends = [seconds.min() / 1.25, seconds.max() * 1.25]
    axes.plot(ends, ends, **style.IDEAL)
    for axis in (axes.xaxis, axes.yaxis):
        style.log2_axis(axis, style.POWERS[::2])
    axes.set(xlim=ends, ylim=ends, xlabel="measured, s", ylabel="predicted, s")
    style.legend(figure, style.names(groups), linestyle="none")
    return figure
