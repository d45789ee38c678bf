"""Q1: larger batches on one GPU."""

import math

import numpy as np
import pandas as pd

from scaling.claims.claim import (
    BATCH,
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
from scaling.tables.noise import Noise
from scaling.tables.schema import StudyTables, rows_of

LARGER = Hypothesis(
    "Q1-faster",
    "Larger batches make the steps of an epoch faster on one GPU.",
    test="Training times (batches in memory) at each larger batch and at the smallest, of runs of "
    "one machine. Supported: the larger batch is faster, the 95 % interval of the ratio is above "
    "1; refuted: slower, or the same to 1 %.",
)
GAPS = Hypothesis(
    "Q1-gaps",
    "With a small batch the GPU is idle most of the time.",
    test="An epoch of the smallest batch: 1 − busy seconds of a traced step · steps / epoch. "
    "Supported: at least half at either end of the epoch's 95 % interval; refuted: less at both.",
)
FITS = 0.05
"""The largest residual of a model of a step's time that is printed."""


def batches(tables: StudyTables) -> Answer:
    """Answer by the model of a step's time that fits; two claims on each recipe on one GPU."""
    busy = tables.device_time[[*CELL_KEYS, "busy_seconds"]]
    shares = tables.utilization[[*CELL_KEYS, "idle_share", "loading_share"]]
    times = measured(tables.timing, "epoch_seconds").merge(busy, "left", CELL_KEYS)
    times = _alone(times.merge(shares, "left", CELL_KEYS))
    commands = set(tables.costs.loc[tables.costs["engine"] == COMMAND.name, "recipe"])
    claims, models, rates = [], list[str](), list[str]()
    ran = tables.provenance[tables.provenance["gpus"] == 1]
    noise = Noise(ran, "training_seconds")
    for recipe, cells in times.groupby("recipe", sort=False):
        about, trained = f"{recipe}, 1 GPU", cells[cells["training_seconds"].notna()]
        if recipe in commands:
            rates += [_rates(recipe, cells)] if len(cells) > 1 else []
            claims.append(LARGER.missing(about, OF_A_COMMAND))
        elif len(cells) > 1:
            missing = without_steps(tables, str(recipe))
            claims += [_larger(about, trained, noise), _gaps(about, cells, missing)]
        found = noise.times(trained)["value"]
        if len(trained) > 2 and (model := _model(trained.assign(training_seconds=found))):
            models.append(f"{recipe}, {model}")
    text = f"Steps take: {'; '.join(models[:3])}." * bool(models) + _waits(times) + "".join(rates)
    add = "Add 1 to `grid.gpus` and a second size to `grid.batch_sizes`."
    return Answer(text.strip() or None, claims or [LARGER.missing("", add)])


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


def _model(cells: pd.DataFrame) -> str:
    """Return the better model of a training time in words, "" if neither fits at every batch size.

    Steps take a constant and a part for each image, or the longer of the host's time and the GPU's.
    """
    names = ["training_seconds", "iterations", "samples", "busy_seconds"]
    seconds, steps, images, busy = cells[names].to_numpy(float).T
    both = np.stack([steps / seconds, images / seconds], axis=1)
    step, image = np.linalg.lstsq(both, np.ones(len(cells)))[0]
    added = np.abs(both @ [step, image] - 1).max() if min(step, image) > 0 else math.inf
    hosts = np.geomspace((seconds / steps).min(), (seconds / steps).max(), 500)[:, None]
    longer = steps * np.maximum(hosts, busy) / seconds
    residuals = np.nan_to_num(np.abs(longer - 1), nan=math.inf).max(axis=1)
    host, either = hosts[residuals.argmin(), 0], residuals.min()
    if min(added, either) > FITS:
        return ""
    if added <= either:
        parts = (fmt.significant(1e3 * step), fmt.significant(1e6 * image))
        return "{} ms + {} µs/image".format(*parts)
    told = f"host {fmt.significant(1e3 * host, 2)} ms"
    above = cells.loc[busy > host, "batch_size"]
    return told + (f", GPU longer from {BATCH}{above.min()}" if len(above) else "")


def _waits(cells: pd.DataFrame) -> str:
    """Return a sentence on the first recipe that waits for data for most of its epochs."""
    cells = cells[cells["loading_share"] >= HALF]
    for recipe, own in cells.groupby("recipe", sort=False):
        share = span(own["loading_share"])
        return f" From {batch(own.iloc[0])} {recipe} waits for data ({share})."
    return ""


def _larger(about: str, work: pd.DataFrame, noise: Noise) -> Claim:
    if len(work) < 2:
        return LARGER.missing(about, NO_STEPS)
    larger = work.iloc[1:]
    small = larger[CELL_KEYS].assign(batch_size=work["batch_size"].iloc[0])
    verdicts = noise.ratios(small, larger)["verdict"]
    parts = [
        (cell, own == "faster", own in ("slower", "same"))
        for cell, own in zip(rows_of(larger), verdicts, strict=True)
    ]
    fast, _ = extremes(larger, "training_seconds")
    ends = (fast, next(rows_of(work)))
    told = ", ".join(f"{fmt.seconds(row.training_seconds)} with {batch(row)}" for row in ends)
    return LARGER.claim(about, f"Training time {told}.", parts=parts)


def _gaps(about: str, cells: pd.DataFrame, missing: str) -> Claim:
    traced = cells[cells["idle_share"].notna()]
    if traced.empty:
        return GAPS.missing(about, missing)
    small, large = extremes(traced, "batch_size")
    told = (f"{fmt.percent(row.idle_share)} with {batch(row)}" for row in (small, large))
    least, most = (
        1 - (1 - small.idle_share) * small.epoch_seconds / end
        for end in (small.epoch_seconds_low, small.epoch_seconds_high)
    )
    text = f"The GPU is idle for {', '.join(told)}."
    return GAPS.claim(about, text, holds=least >= HALF, fails=most < HALF)
