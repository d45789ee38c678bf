"""Questions 1 and 2: larger batches and more GPUs."""

import math
from typing import Any

import numpy as np
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
    label,
    measured,
    most_gpus,
    span,
    without_steps,
)
from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.registry.engine import COMMAND
from scaling.tables.noise import NO_TIME, Noise
from scaling.tables.ratios import UNLIKE
from scaling.tables.schema import StudyTables, by_configuration, rows_of

LARGER = Hypothesis(
    "Q1-faster",
    "Larger batches shorten the training time of an epoch on one GPU.",
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
"""The largest relative residual with which a model of a step's time is still printed."""


def batches(tables: StudyTables) -> Answer:
    """Answer with the model of a step's time that fits; two claims for each recipe on one GPU."""
    busy = tables.device_time[[*CELL_KEYS, "busy_seconds"]]
    shares = tables.utilization[[*CELL_KEYS, "idle_share", "loading_share"]]
    times = measured(tables.timing, "epoch_seconds").merge(busy, "left", CELL_KEYS)
    times = _alone(times.merge(shares, "left", CELL_KEYS))
    commands = set(tables.costs.loc[tables.costs["engine"] == COMMAND.name, "recipe"])
    claims, found = [], list[str]()
    noise = Noise(tables.provenance[tables.provenance["gpus"] == 1], "training_seconds")
    for recipe, cells in times.groupby("recipe", sort=False):
        about, trained = f"{recipe}, 1 GPU", cells[cells["training_seconds"].notna()]
        if recipe in commands:
            found += [_throughput(recipe, cells)] if len(cells) > 1 else []
            claims.append(LARGER.missing(about, OF_A_COMMAND))
        elif len(cells) > 1:
            missing = without_steps(tables, str(recipe))
            claims += [_larger(about, trained, noise), _gaps(about, cells, missing)]
        values = noise.times(trained)["value"]
        if len(trained) > 2 and (model := _model(trained.assign(training_seconds=values))):
            found.append(f"With {recipe} {model}.")
    text = " ".join([*found[:3], *_waits(times)])
    add = "Add 1 to `grid.gpus` and a second size to `grid.batch_sizes`."
    return Answer(text or None, claims or [LARGER.missing("", add)])


def _alone(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `cells` on one GPU, sorted by batch size."""
    return cells[cells["gpus"] == 1].sort_values("batch_size", kind="stable")


def _throughput(recipe: object, cells: pd.DataFrame) -> str:
    """Return a sentence with the lowest and highest throughput of a command over batch sizes."""
    known = cells["samples"].notna().all()
    values = cells["samples"] / cells["epoch_seconds"] if known else cells["epoch_seconds"]
    ends = cells.loc[[*dict.fromkeys([values.idxmin(), values.idxmax()])]]
    figures = zip(values.loc[ends.index], rows_of(ends), strict=True)
    texts = (f"{fmt.significant(value)} with {batch(row)}" for value, row in figures)
    unit = f"{cells['unit'].iloc[0]}/s" if known else "seconds an epoch"
    return f"{recipe} on 1 GPU, {unit}: {' to '.join(texts)}."


def _model(cells: pd.DataFrame) -> str:
    """Return the better of two models of a step's time; "" if neither fits all batch sizes.

    Its time is a constant plus a time per image, or the longer of the host's and the GPU's time.
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
        return "a step takes {} ms and {} µs per image".format(*parts)
    above = cells.loc[busy > host, "batch_size"]
    longer = f"; from b\u00a0=\u00a0{above.min()} the GPU takes longer" * bool(len(above))
    each = f"{fmt.significant(1e3 * host, 2)} ms to launch a step"
    return f"the host needs {each}, and a larger batch has fewer{longer}"


def _waits(cells: pd.DataFrame) -> list[str]:
    """Return a sentence on the first recipe that waits for data half an epoch or more, or []."""
    cells = cells[cells["loading_share"] >= HALF]
    for recipe, own in cells.groupby("recipe", sort=False):
        share = span(own["loading_share"])
        return [f"From {batch(own.iloc[0])} on, data wait takes {share} of an epoch of {recipe}."]
    return []


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
    texts = ", ".join(f"{fmt.seconds(row.training_seconds)} with {batch(row)}" for row in ends)
    return LARGER.claim(about, f"Training time {texts}.", parts=parts)


def _gaps(about: str, cells: pd.DataFrame, missing: str) -> Claim:
    traced = cells[cells["idle_share"].notna()]
    if traced.empty:
        return GAPS.missing(about, missing)
    small, large = extremes(traced, "batch_size")
    texts = (f"{fmt.percent(row.idle_share)} with {batch(row)}" for row in (small, large))
    least, most = (
        1 - (1 - small.idle_share) * small.epoch_seconds / end
        for end in (small.epoch_seconds_low, small.epoch_seconds_high)
    )
    text = f"The GPU is idle for {', '.join(texts)}."
    return GAPS.claim(about, text, holds=least >= HALF, fails=most < HALF)


FASTER = Hypothesis(
    "Q2-faster",
    "Several GPUs finish an epoch faster than one.",
    test="The speedup on the most GPUs, at each batch size, of runs of one machine. Supported: "
    "faster, its 95 % interval is above 1; refuted: slower, or the same to 1 %.",
)


def speedups(tables: StudyTables) -> Answer:
    """Answer with the speedups on the most GPUs; a claim for each recipe and strategy."""
    table = tables.speedup
    claims = []
    for name, cells in by_configuration(table[table["gpus"] > 1]).items():
        most = most_gpus(cells.dropna(subset="speedup"))
        if len(most):
            claims.append(_faster(name, most))
        elif not cells["note"].str.startswith(UNLIKE).any():
            notes = [note for note in cells["note"] if note not in ("", NO_TIME)]
            add = "Add 1 to `grid.gpus`, or the batch sizes of one GPU to `grid.batch_sizes`."
            add = f"{notes[0].capitalize()}." if notes else add
            claims.append(FASTER.missing(name, add))
    missing = FASTER.missing("", "Add 2 or more to `grid.gpus`.")
    return Answer(_weak_and_strong(tables), claims or [missing])


def _weak_and_strong(tables: StudyTables) -> str | None:
    """Return sentences on the speedups by weak and by strong scaling; None without a speedup."""
    found = by_efficiency(tables.speedup)
    if not found:
        return None
    timed = all(rows["training_speedup"].notna().all() for _, rows in found)
    kind, of = ("training_speedup", "training time") if timed else ("speedup", "epoch time")
    weak = [f"{name} {span(rows[kind], fmt.times)}" for name, rows in found[:3]]
    why = (f"{one} (one process launches for all GPUs)" if "/dp " in one else one for one in weak)
    strong = [
        f"{fmt.times(row.fixed_global_batch_speedup)} ({label(row)})"
        for row in rows_of(tables.speedup.dropna(subset="fixed_global_batch_speedup"))
        if row.gpus > 1
    ]
    trained = rows_of(most_gpus(tables.trained_to_accuracy.dropna(subset="speedup")))
    strong += [
        f"{fmt.times(row.speedup)} ({label(row)}, training to {fmt.percent(row.target_accuracy)})"
        for row in trained
    ]
    on = fmt.gpus(found[0][1]["gpus"].iloc[0])
    text = f"Weak scaling (fixed batch per GPU) of {of} on {on}: {', '.join(why)}. Strong "
    return f"{text}scaling (fixed global batch): {', '.join(strong[:3]) or 'not measured'}."


def by_efficiency(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return pairs of recipe/strategy and its cells on most GPUs, the most efficient first."""
    known = most_gpus(table[(table["gpus"] > 1) & table["speedup"].notna()])
    return sorted(by_configuration(known).items(), key=lambda one: -one[1]["efficiency"].median())


def _faster(name: str, most: pd.DataFrame) -> Claim:
    least, best = extremes(most, "speedup")
    ends = dict.fromkeys(f"{batch(row)}: {line(row)}" for row in (least, best))
    rows = list(rows_of(most))
    parts = [(row, row.verdict == "faster", row.verdict in ("slower", "same")) for row in rows]
    more = max((row.more_runs for row in rows if row.more_runs > 0), default=0)
    needed = f"needs {fmt.plural(more, 'more run')} of each" if more else ""
    about = f"{name}, {fmt.gpus(least.gpus)}"
    return FASTER.claim(about, f"{'; '.join(ends)}.", parts=parts, unclear=needed)


def line(row: Any) -> str:
    """Format the speedup of a row, its interval and scope: `1.87× [1.86, 1.88], 3 machines`."""
    return fmt.judged(row.speedup, row.speedup_low, row.speedup_high, row.scope)
