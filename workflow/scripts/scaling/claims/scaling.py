"""Questions 1 to 3: larger batches, more GPUs, the parts of an epoch, and bandwidth."""

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
"""The largest residual of a model of a step's time that is printed."""


def batches(tables: StudyTables) -> Answer:
    """Answer by the model of a step's time that fits; two claims on each recipe on one GPU."""
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
    """Return the cells on one GPU by batch size."""
    return cells[cells["gpus"] == 1].sort_values("batch_size", kind="stable")


def _throughput(recipe: object, cells: pd.DataFrame) -> str:
    """Return a sentence on how much a command trains a second, or takes, by batch size."""
    known = cells["samples"].notna().all()
    values = cells["samples"] / cells["epoch_seconds"] if known else cells["epoch_seconds"]
    ends = cells.loc[[*dict.fromkeys([values.idxmin(), values.idxmax()])]]
    figures = zip(values.loc[ends.index], rows_of(ends), strict=True)
    texts = (f"{fmt.significant(value)} with {batch(row)}" for value, row in figures)
    unit = f"{cells['unit'].iloc[0]}/s" if known else "seconds an epoch"
    return f"{recipe} on 1 GPU, {unit}: {' to '.join(texts)}."


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
        return "a step takes {} ms and {} µs per image".format(*parts)
    above = cells.loc[busy > host, "batch_size"]
    longer = f"; from b\u00a0=\u00a0{above.min()} the GPU takes longer" * bool(len(above))
    return f"the host needs {fmt.significant(1e3 * host, 2)} ms to launch a step{longer}"


def _waits(cells: pd.DataFrame) -> list[str]:
    """Return a sentence on the first recipe that waits for data for most of its epochs."""
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
    """Answer by the speedups on the most GPUs; a claim for each recipe and strategy with ratios."""
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
    """Return the weak speedup of each configuration, and the strong ones that are known."""
    found = by_efficiency(tables.speedup)
    if not found:
        return None
    weak = [f"{name} {span(rows['speedup'], fmt.times)}" for name, rows in found[:3]]
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
    text = f"Weak scaling (fixed batch per GPU) on {on}: {', '.join(why)}. Strong scaling (fixed "
    return f"{text}global batch): {', '.join(strong[:3]) or 'not measured'}."


def by_efficiency(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return the cells on the most GPUs by configuration, the most efficient first."""
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
    """Return a row's speedup, its interval and its scope, `1.87× [1.86, 1.88], 3 machines`."""
    return fmt.judged(row.speedup, row.speedup_low, row.speedup_high, row.scope)


PARTS = {
    "utilization": "matrix products at peak",
    "slower_share": "other kernel time",
    "idle_besides_share": "GPU idle",
    "communication_share": "exposed communication",
    "loading_share": "data wait",
    "unknown_share": "unattributed",
}
"""The parts of an epoch in order, by the columns of utilization.csv with their shares."""
NO_PEAK = (
    "There is no trace of steps, or no sweep of messages of their sizes on a machine that ran them."
)
COMPUTED = ["utilization", "slower_share"]
"""Those in which kernels compute."""
COMPUTING = Hypothesis(
    "Q3.1-computing",
    "Computing takes most of an epoch on several GPUs.",
    test="Matrix products at peak and other kernel time, as shares of an epoch, by batch size. "
    "Supported: together more than half; refuted: less, also with all that is unattributed.",
    more="a trace",
)
BANDWIDTH = Hypothesis(
    "Q3.2-bandwidth",
    "Gradients reach at least half of the bandwidth of standalone all-reduces.",
    test="Bytes of an epoch over the seconds of its messages in the trace, over the peak measured "
    "on the same machine, on the most GPUs. More than the peak is left out. Supported: half or "
    "more; refuted: less.",
)


def parts(tables: StudyTables) -> Answer:
    """Answer by the largest part of an epoch; a claim a configuration on the most GPUs."""
    claims = []
    table = tables.utilization[tables.utilization["gpus"] > 1]
    for name, rows in by_configuration(table).items():
        known = measured(rows, "communication_share")
        cells = most_gpus(rows if known.empty else known)
        about = f"{name}, {fmt.gpus(cells['gpus'].iloc[0])}"
        shares = cells.dropna(subset="slower_share")
        claims.append(_computing(about, shares, without_steps(tables, rows["recipe"].iloc[0])))
    missing = COMPUTING.missing("", "Add 2 or more to `grid.gpus`.")
    return Answer(_largest(table), claims or [missing])


def _largest(table: pd.DataFrame) -> str | None:
    """Return the largest part of a median epoch and that of communication, on several GPUs."""
    texts = []
    for name, rows in by_configuration(table.dropna(subset="communication_share")).items():
        median = rows[list(PARTS)].median()
        most = str(median.idxmax())
        share = span(rows["communication_share"])
        part = f"exposed communication takes {share} of an epoch; the largest part is {PARTS[most]}"
        texts.append(f"{name}: {part} ({fmt.percent(median[most])}, median over b).")
    return " ".join(texts[:3]) or None


def _computing(about: str, shares: pd.DataFrame, missing: str) -> Claim:
    low = shares[COMPUTED].sum(axis=1)
    known = shares.assign(low=low, high=low + shares["unknown_share"]).sort_values("batch_size")
    cells = list(rows_of(known))
    if not cells:
        return COMPUTING.missing(about, missing)
    parts = [(cell, cell.low > HALF, cell.high < HALF) for cell in cells]
    return COMPUTING.claim(about, " ".join(map(_parts, [cells[0], *cells[1:][-1:]])), parts=parts)


def _parts(cell: Any) -> str:
    """Name the computing and all other parts that take more than 5 % of a cell's epoch."""
    others = {part: getattr(cell, name) for name, part in PARTS.items() if name not in COMPUTED}
    texts = [f"{fmt.percent(share)} {part}" for part, share in others.items() if share > 0.05]
    return f"{batch(cell)}: {', '.join([f'{fmt.percent(cell.low)} computing', *texts])}."


def bandwidth(tables: StudyTables) -> Answer:
    """Answer by the slowest and fastest gradients; a claim a configuration on the most GPUs."""
    claims, known = [], [tables.bandwidth[:0]]
    for name, rows in by_configuration(tables.bandwidth).items():
        cells, about = most_gpus(rows), f"{name}, {fmt.gpus(rows['gpus'].max())}"
        known.append(measured(cells[cells["utilization"] <= 1], "utilization"))
        missing = without_steps(tables, rows["recipe"].iloc[0])
        claims.append(_bandwidth(about, known[-1], missing))
    whole = pd.concat(known, ignore_index=True)
    if whole.empty:
        none = BANDWIDTH.missing("", "Add 2 or more to `grid.gpus`.")
        rates = measured(tables.bandwidth, "bandwidth_gb_per_s")
        return Answer(None if rates.empty else _rates(rates), claims or [none])
    worst, best = extremes(whole, "utilization")
    text = f"Gradients reach {fmt.percent(best.utilization)} of the bandwidth of standalone "
    text += f"all-reduces, {fmt.significant(best.peak_gb_per_s)} GB/s ({label(best)})"
    if worst.utilization < best.utilization:
        text += f", and at least {fmt.percent(worst.utilization)} ({label(worst)})"
    return Answer(f"{text}.", claims)


def _rates(rates: pd.DataFrame) -> str:
    """Return the lowest and highest bandwidth, without a share of a peak."""
    worst, best = extremes(rates, "bandwidth_gb_per_s")
    low, high = (fmt.significant(cell.bandwidth_gb_per_s) for cell in (worst, best))
    return (
        f"From {low} GB/s ({label(worst)}) to {high} GB/s ({label(best)}). A message lasts until "
        "the slowest rank joins, so low values are waits. Standalone all-reduces of these sizes "
        "were not measured on the same machine."
    )


def _bandwidth(about: str, cells: pd.DataFrame, missing: str) -> Claim:
    if cells.empty:
        return BANDWIDTH.missing(about, NO_PEAK if missing == NO_STEPS else missing)
    worst, best = extremes(cells, "utilization")
    text = f"{fmt.significant(best.bandwidth_gb_per_s)} of {fmt.significant(best.peak_gb_per_s)} "
    text += f"GB/s ({fmt.percent(best.utilization)}) with {batch(best)}"
    if worst.Index != best.Index:
        text += f", {fmt.percent(worst.utilization)} with {batch(worst)}"
    parts = [(cell, cell.utilization >= HALF, True) for cell in rows_of(cells)]
    return BANDWIDTH.claim(about, f"{text}.", parts=parts)
