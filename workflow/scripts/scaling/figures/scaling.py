"""Draw the figures of a study.

A function returns None if the study has nothing to show. Functions that compare numbers of GPUs
also return None for a study on a CPU, where processes share cores.
"""

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from scaling.claims.claim import most_gpus, of_grid, on_several_gpus, weak_scaling
from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.core.statistics import margin
from scaling.figures import style
from scaling.figures.style import Look
from scaling.registry.strategy import DP
from scaling.tables import accuracy
from scaling.tables.epoch_parts import exchange
from scaling.tables.schema import StudyTables, interval, on_cpu

PER_GPU = "batch size per GPU"
GLOBAL = ("global batch", "global_batch", "percent")
APART = 0.25
"""The training time is drawn if it differs from the epoch time by more than this fraction."""
QUANTITIES = {"weights": "weights", "before_relu": "before ReLU", "after_relu": "after ReLU"}
LIMITS = {"weights": (-127.5, 127.5), "before_relu": (-128.5, 127.5), "after_relu": (127.5,)}
"""Outer edges, in levels, of the first and last int8 level; after ReLU, only of the last level."""
LEVELS_PER_BIN = 4
LOOKS: dict[str, dict[str, Any]] = {
    "int8": {"fill": True, "color": style.PALETTE[6], "alpha": 0.4},
    "float": {"baseline": None, "color": style.INK, "linewidth": 1},
}
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
ROW, GAP, BETWEEN = 74, 62, 30
"""Height of a panel, space above it, and space between columns, in pixels."""


def draw_epoch_time(study: StudyTables) -> Figure | None:
    """Draw epoch time over batch size on the fewest GPUs, and training time if it differs."""
    fewest = study.timing["gpus"].min()
    known = on_several_gpus(study.timing).query("gpus == @fewest")
    known = _known(known, "epoch_seconds")
    if known.empty:
        return None
    drawn = []
    for look, rows in _by_look(study, known):
        drawn.append((look._replace(hollow=False), rows))
        if (abs(rows["epoch_seconds"] / rows["training_seconds"] - 1) > APART).any():
            alone = rows[interval("training_seconds")].set_axis(interval("epoch_seconds"), axis=1)
            training = look._replace(label=f"{look.label}, training", hollow=True)
            drawn.append((training, rows.assign(**alone)))
    title = f"Seconds per epoch on {fmt.gpus(fewest)}"
    return style.panel(title, PER_GPU, "batch_size", "epoch_seconds", drawn, log=True)[0]


def draw_speedup(study: StudyTables) -> Figure | None:
    """Draw speedup over batch size on the most GPUs."""
    known = most_gpus(_known(study.speedup[study.speedup["gpus"] > 1], "speedup"))
    if known.empty or on_cpu(study.provenance):
        return None
    column, what = weak_scaling(known, study.timing)
    most, of = known["gpus"].iloc[0], (PER_GPU, "batch_size", column)
    title = f"Speedup of {what}, {fmt.gpus(most)}"
    figure, axes = style.panel(title, *of, _by_look(study, known), top=1.05 * most)
    style.guide(axes, most, "ideal")
    style.guide(axes, 1, "as 1 GPU")
    return figure


def draw_communication(study: StudyTables) -> Figure | None:
    """Draw communication over batch size on the most GPUs, in % of the training time."""
    known = most_gpus(of_grid(exchange(study.communication), study.timing))
    seconds = known[interval("exchange_seconds")].set_axis(interval("share"), axis=1)
    shares = seconds.div(known["training_seconds"] / 100, axis=0)
    known = _known(known.assign(**shares), "share")
    if known.empty or on_cpu(study.provenance):
        return None
    on = f"{PER_GPU}, on {fmt.gpus(known['gpus'].max())}"
    drawn = _by_look(study, known)
    return style.panel("Communication, % of training", on, "batch_size", "share", drawn)[0]


def draw_bandwidth(study: StudyTables) -> Figure | None:
    """Draw bus bandwidth of all-reduces over message sizes on the most GPUs, alone and in training.

    DataParallel is left out, because it sends other messages than all-reduces.
    """
    swept = most_gpus(study.interconnect)
    if swept.empty or on_cpu(study.provenance):
        return None
    most = swept["gpus"].iloc[0]
    swept = swept[~swept["kind"].isin(DP.sweep_kinds)]
    swept = swept.groupby("message_bytes", as_index=False)[["busbw_gb_per_s"]].mean()
    swept = swept.rename(columns={"busbw_gb_per_s": "rate"})
    reached = study.bandwidth.rename(columns={"bandwidth_gb_per_s": "rate"}).dropna(subset="rate")
    # Each cell at the mean size of the messages that it sends.
    sent = study.costs.loc[study.costs["message_bytes"] != "", [*CELL_KEYS, "message_bytes"]]
    sizes = sent["message_bytes"].map(lambda text: np.mean([*map(int, text.split())]))
    reached = reached[(reached["gpus"] == most) & (reached["strategy"] != DP.name)]
    reached = reached.merge(sent.assign(message_bytes=sizes), on=CELL_KEYS)
    drawn = [(Look("alone", style.INK, ""), swept), *_by_look(study, reached)]
    title, of = f"All-reduce on {fmt.gpus(most)}, GB/s", ("bytes of a message", "message_bytes")
    ticks = {1e4: "10 kB", 1e6: "1 MB", 1e8: "100 MB"}
    figure, axes = style.panel(title, *of, "rate", drawn, log=True, ticks=ticks)
    for line in axes.lines[1:]:
        line.set_linestyle("none")
    if len(reached):
        style.note(axes, "markers: in training steps, without dp")
    return figure


def draw_remedies(study: StudyTables) -> Figure | None:
    """Draw test accuracy over the global batch. Only the first and best techniques have colours."""
    known = _known(study.remedies, "test_accuracy", "global_batch")
    if known.empty:
        return None
    score = known["validation_accuracy"].fillna(known["test_accuracy"])
    ranks = score.groupby(known["global_batch"]).rank(ascending=False).sort_values(kind="stable")
    named = list(dict.fromkeys([known["remedy"].iloc[0], *known["remedy"][ranks.index]]))
    keys = ["remedy", "global_batch"]
    seeds = study.convergence.query("chosen == True").groupby(keys)["test_accuracy"]
    known = known.join(seeds.agg(test_accuracy_std="std", test_accuracy_count="count"), on=keys)
    groups = dict(list(_in_percent(known).groupby("remedy", sort=False)))
    drawn = [
        (Look(name.replace("_", " "), colour, marker), groups.pop(name))
        for name, colour, marker in zip(named, style.PALETTE, cycle(style.MARKERS), strict=False)
    ]
    figure, axes = style.panel("Test accuracy by technique, %", *GLOBAL, drawn)
    for rows in groups.values():
        over = rows[["global_batch", "percent"]].to_numpy().T
        axes.plot(*over, color=style.FAINT, linewidth=1, zorder=1)
    if groups:
        style.note(axes, "grey: other techniques")
    return figure


def draw_learning(study: StudyTables) -> Figure | None:
    """Draw test accuracy over the global batch: each recipe on one GPU and on the most GPUs."""
    table = accuracy.compare_batches(study).rename(columns={"global_batch_size": "global_batch"})
    known = _in_percent(_known(on_several_gpus(table), "test_accuracy", "global_batch"))
    if known.empty:
        return None
    most = known.groupby(["recipe", "strategy"])["gpus"].transform("max")
    drawn = _by_look(study, known[known["gpus"] == most])
    return style.panel("Test accuracy, %", *GLOBAL, drawn)[0]


def draw_quantization_histograms(study: StudyTables) -> Figure | None:
    """Draw histograms in panels, with a row for each layer and a column for each quantity."""
    table = study.quantization_histograms
    layers = list(table["layer"].unique())
    if not layers:
        return None
    high, wide = len(layers) * (ROW + GAP) + 38, (style.WIDTH - 32 - 2 * BETWEEN) / 3
    figure = Figure(figsize=(style.WIDTH / style.PIXELS, high / style.PIXELS))
    legend = "line: float32; area: int8; dotted: end of int8"
    figure.text(0, 0.5 / high, legend, color=style.SOFT, fontsize=11)
    for (name, quantity), rows in table.groupby(["layer", "quantity"], sort=False):
        down, across = layers.index(name), list(QUANTITIES).index(str(quantity))
        left, top = 32 + across * (wide + BETWEEN), (down + 1) * (ROW + GAP)
        place = (left / style.WIDTH, 1 - top / high, wide / style.WIDTH, ROW / high)
        _draw_histogram(axes := figure.add_axes(place), rows)
        words = f"{QUANTITIES[str(quantity)]}\n1 level = {1 / rows['scale'].iloc[0]:.2g}"
        axes.set_title(words, fontsize=11, fontweight="normal", pad=3)
        if across == 0:
            axes.annotate(
                str(name), (0, 1), (-32, 34), "axes fraction", "offset points", fontweight="bold"
            )
    return figure


def _draw_histogram(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw the shares of values in bins of `LEVELS_PER_BIN` levels, and the limits of int8."""
    quantity, scale = rows[["quantity", "scale"]].iloc[0]
    for values, look in LOOKS.items():
        own = rows[rows["values"] == values]
        levels = (own["bin_low"] * scale + 0.5).round()
        first = levels.min() // LEVELS_PER_BIN * LEVELS_PER_BIN
        edges = np.arange(first, levels.max() + LEVELS_PER_BIN + 1, LEVELS_PER_BIN) - 0.5
        shares, _ = np.histogram(levels, edges, weights=own["count"] / own["count"].sum())
        axes.stairs(shares, edges / scale, **look)
    for limit in LIMITS[quantity]:
        axes.axvline(limit / scale, color=style.SOFT, linestyle=":", linewidth=1)
    axes.set(yscale="log", ylim=(None, 1))
    axes.tick_params(labelsize=11)
    axes.yaxis.set_major_locator(LogLocator(numticks=3))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(_power)
    axes.xaxis.set_major_locator(MaxNLocator(2))


def _power(share: float, _: object) -> str:
    """Return the power of ten nearest to `share` as text: `10⁻³`."""
    return "10" + str(round(np.log10(share))).translate(RAISED)


def _known(table: pd.DataFrame, column: str, over: str = "batch_size") -> pd.DataFrame:
    """Return the rows with a value in `column`, sorted by `over`; none if `over` is constant."""
    known = table[table[column].notna()].sort_values(over, kind="stable")
    return known if known[over].nunique() > 1 else known.iloc[:0]


def _in_percent(table: pd.DataFrame) -> pd.DataFrame:
    """Return `table` with test accuracy in % (`percent`) and an interval (NaN below 3 seeds)."""
    count = table["test_accuracy_count"].where(table["test_accuracy_count"] >= accuracy.SEEDS)
    off = 100 * margin([table["test_accuracy_std"]], [count])
    value = 100 * table["test_accuracy"]
    return table.assign(percent=value, percent_low=value - off, percent_high=value + off)


def _by_look(study: StudyTables, table: pd.DataFrame) -> Sequence[tuple[Look, pd.DataFrame]]:
    """Return (look, rows) of each recipe and strategy in `table`."""
    looks = style.looks(study)
    groups: Any = table.groupby(["recipe", "strategy"], sort=False)
    return [(looks[name], rows) for name, rows in groups]
