"""What to run: the fastest cell, the cheapest, and the most GPUs that are still efficient."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.finding import Finding, measured, source
from scaling.tables.cost_model import timed
from scaling.tables.derived import DerivedTables
from scaling.tables.prediction import limit

EFFICIENT = 0.8
BAD_MEDIAN, BAD_WORST = 0.1, 0.2
"""Errors of the cells left out above which the model is said to predict badly: median, worst."""


def recommend(tables: DerivedTables) -> list[Finding]:
    """The sentences, measured figures first."""
    return [fastest(tables), cheapest(tables), efficient(tables), *beyond(tables)]


def fastest(tables: DerivedTables) -> Finding:
    """The cell with the shortest epoch."""
    cells = timed(tables.timing)
    if cells.empty:
        return Finding("No cell has a time.", "timing.csv", supported=False)
    best = next(cells.loc[[cells["epoch_seconds"].idxmin()]].itertuples())
    return Finding(
        f"Fastest: {fmt.cell_name(best)}, {fmt.seconds(best.epoch_seconds)} an epoch.",
        source("timing", best),
    )


def cheapest(tables: DerivedTables) -> Finding:
    """The cell with the fewest GPU-seconds an epoch."""
    cells = timed(tables.timing)
    if cells.empty:
        return Finding("No cell has a cost.", "timing.csv", supported=False)
    cost = cells["gpus"] * cells["epoch_seconds"]
    best = next(cells.loc[[cost.idxmin()]].itertuples())
    return Finding(
        f"Cheapest: {fmt.cell_name(best)}, {fmt.significant(cost.min())} GPU-seconds an epoch.",
        source("timing", best),
    )


def efficient(tables: DerivedTables) -> Finding:
    """The most GPUs with an efficiency of 80 % or more, as measured."""
    cells = measured(tables.speedup, "efficiency")
    cells = cells[(cells["gpus"] > 1) & (cells["efficiency"] >= EFFICIENT)]
    if cells.empty:
        return Finding(
            f"On no more than one GPU: no cell on several is known to be "
            f"{fmt.percent(EFFICIENT)} efficient.",
            "speedup.csv",
        )
    most = cells[cells["gpus"] == cells["gpus"].max()]
    best = next(most.loc[[most["efficiency"].idxmax()]].itertuples())
    doubt = ", above 100\u00a0%: see the audit" if best.efficiency > 1 else ""
    return Finding(
        f"Most GPUs at {fmt.percent(EFFICIENT)} efficiency or more: {fmt.gpus(int(best.gpus))} "
        f"({fmt.cell_name(best)}: {fmt.percent(best.efficiency)}{doubt}).",
        source("speedup", best),
    )


def beyond(tables: DerivedTables) -> list[Finding]:
    """What each model says of more GPUs than were measured, with the error it is known to make."""
    found = []
    for (recipe, strategy), rows in tables.prediction.groupby(["recipe", "strategy"], sort=False):
        model = tables.cost_model
        model = model[(model["recipe"] == recipe) & (model["strategy"] == strategy)]
        unmeasured = rows[~rows["measured"]]
        if unmeasured.empty or model.empty:
            continue
        verdict = next(model.itertuples())
        fast = next(unmeasured.loc[[unmeasured["predicted_seconds"].idxmin()]].itertuples())
        text = (
            f"Not measured, by the model of {recipe}/{strategy}: {fmt.gpus(int(fast.gpus))} with "
            f"b\u00a0=\u00a0{int(fast.batch_size)} would take {fmt.seconds(fast.predicted_seconds)}"
            f"{_interval(fast)} an epoch; {_efficient(unmeasured)}. {_trust(verdict)}"
        )
        beyond_model = limit(model)
        if beyond_model:
            text = f"{text} {beyond_model[0].upper()}{beyond_model[1:]}."
        found.append(Finding(text, source("prediction", fast)))
    return found


def _interval(row: Any) -> str:
    """The 95 % interval of a prediction in brackets, "" where there is none."""
    low, high = row.low_seconds, row.high_seconds
    return "" if pd.isna(low) else f" (95 % interval {fmt.span(low, high)})"


def _efficient(rows: pd.DataFrame) -> str:
    good = rows[rows["predicted_efficiency"] >= EFFICIENT]
    if good.empty:
        return f"none of them would be {fmt.percent(EFFICIENT)} efficient"
    most = good[good["gpus"] == good["gpus"].max()]
    best = next(most.loc[[most["predicted_efficiency"].idxmax()]].itertuples())
    return (
        f"up to {fmt.gpus(int(best.gpus))} (b\u00a0=\u00a0{int(best.batch_size)}) would be "
        f"{fmt.percent(EFFICIENT)} efficient or more"
    )


def _trust(verdict: Any) -> str:
    """How far off the model was where it could be checked; `verdict` is a row of cost_model.csv."""
    median, worst = verdict.median_error, verdict.worst_error
    if pd.isna(median):
        return "Nothing could be left out to check the model by, so its error is unknown."
    gpus = fmt.gpus(int(verdict.held_out_gpus))
    sentence = (
        f"Fitted without the cells on {gpus}, it missed them by {fmt.percent(median)} (median), "
        f"at worst {fmt.percent(worst)}"
    )
    if median > BAD_MEDIAN or worst > BAD_WORST:
        return f"{sentence}: it predicts badly, so this is a direction and no figure to plan with."
    return f"{sentence}."
