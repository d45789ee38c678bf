"""Q1: larger batches on one GPU."""

import pandas as pd

from scaling.claims.claim import (
    HALF,
    NO_STEPS,
    OF_A_COMMAND,
    Answer,
    Claim,
    Hypothesis,
    batch,
    extremes,
    measured,
    span,
    without_steps,
)
from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.registry.engine import COMMAND
from scaling.tables import ratios
from scaling.tables.schema import StudyTables, rows_of

LARGER = Hypothesis(
    "Q1-faster",
    "Larger batches make the steps of an epoch faster on one GPU.",
    test="Epochs on batches in memory (the epoch itself where it waits for less than 2 %) at each "
    "larger batch and at the smallest. Supported: the larger batch is faster by more than noise; "
    "refuted: slower by more.",
)
GAPS = Hypothesis(
    "Q1-gaps",
    "In a step of a small batch the GPU is idle most of the time.",
    test="A step of the smallest batch in memory, traced: seconds without a kernel over all its "
    "seconds, with the lowest and the highest over the seeds, of one seed half and double. "
    "Supported: at least half by either extreme; refuted: less than half by both.",
)


def batches(tables: StudyTables) -> Answer:
    """Answer by what a step costs besides its images; two claims on each recipe on one GPU."""
    steps = tables.timing[[*CELL_KEYS, "iterations"]]
    work = _alone(measured(tables.epoch_parts, "work_seconds").merge(steps, on=CELL_KEYS))
    commands = set(tables.costs.loc[tables.costs["engine"] == COMMAND.name, "recipe"])
    claims, costs, rates = [], [], list[str]()
    times = _alone(measured(tables.timing, "epoch_seconds"))
    for recipe, cells in times.groupby("recipe", sort=False):
        about, own = f"{recipe}, 1 GPU", work[work["recipe"] == recipe]
        if recipe in commands:
            rates += [_rates(recipe, cells)] if len(cells) > 1 else []
            claims.append(LARGER.missing(about, OF_A_COMMAND))
        elif len(cells) > 1:
            traced = _alone(tables.device_time.dropna(subset="gap_seconds"))
            traced, missing = traced[traced["recipe"] == recipe], without_steps(tables, recipe)
            claims += [_larger(about, own), _gaps(about, traced, missing)]
        if (cost := _cost_of_a_step(own)) > 0:
            costs.append(f"{fmt.significant(1000 * cost)} ms with {recipe}")
    text = f"Each step costs {', '.join(costs[:3])}, besides its images; larger batches take fewer."
    text += _waits(_alone(measured(tables.utilization, "loading_share")))
    add = "Add 1 to `grid.gpus` and a second size to `grid.batch_sizes`."
    text = text if costs else ""
    text += "".join(rates)
    return Answer(text or None, claims or [LARGER.missing("", add)])


def _alone(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells on one GPU by batch size."""
    return cells[cells["gpus"] == 1].sort_values("batch_size", kind="stable")


def _rates(recipe: object, cells: pd.DataFrame) -> str:
    """Return a sentence on how much a command trains a second, or takes, by batch size."""
    known = cells["samples"].notna().all()
    values = cells["samples"] / cells["epoch_seconds"] if known else cells["epoch_seconds"]
    figures = zip(values, rows_of(cells), strict=True)
    said = ", ".join(f"{fmt.significant(value)} with {batch(row)}" for value, row in figures)
    unit = f"{cells['unit'].iloc[0]}/s" if known else "seconds an epoch"
    return f" {recipe}, on 1 GPU, {unit}: {said}."


def _cost_of_a_step(work: pd.DataFrame) -> float:
    """Return the seconds of the smallest batch's step beyond its images at the fastest rate."""
    steps = work["work_seconds"] / work["iterations"]
    beyond = steps - work["batch_size"] * (steps / work["batch_size"]).min()
    return float(beyond.iloc[0]) if len(beyond) else 0.0


def _waits(cells: pd.DataFrame) -> str:
    """Return a sentence on the first recipe that waits for data for most of its epochs."""
    cells = cells[cells["loading_share"] >= HALF]
    for recipe, own in cells.groupby("recipe", sort=False):
        share = span(own["loading_share"])
        return f" From {batch(own.iloc[0])} {recipe} waits for data ({share})."
    return ""


def _larger(about: str, work: pd.DataFrame) -> Claim:
    if len(work) < 2:
        return LARGER.missing(about, NO_STEPS)
    small, *cells = rows_of(work)
    fast, _ = extremes(work.iloc[1:], "work_seconds")
    paired = work.iloc[1:].assign(**work.iloc[0].add_prefix("small_"))
    found = rows_of(ratios.ratios(paired, "small_", "", "work_seconds"))
    parts = [(cell, one.low > 1, one.high < 1) for cell, one in zip(cells, found, strict=True)]
    said = ", ".join(f"{fmt.seconds(row.work_seconds)} with {batch(row)}" for row in (fast, small))
    return LARGER.claim(about, f"{said}, without waiting for data.", parts=parts)


def _gaps(about: str, traced: pd.DataFrame, missing: str) -> Claim:
    if traced.empty:
        return GAPS.missing(about, missing)
    small, large = extremes(traced, "batch_size")
    unknown = ratios.LONE_READING if small.count == 1 else 1.0
    said = (
        f"{fmt.percent(max(0, row.gap_seconds) / row.step_seconds)} with {batch(row)}"
        for row in (small, large)
    )
    return GAPS.claim(
        about,
        f"Without a kernel: {', '.join(said)}.",
        holds=small.gap_seconds_min / unknown >= HALF * small.step_seconds,
        fails=small.gap_seconds_max * unknown < HALF * small.step_seconds,
    )
