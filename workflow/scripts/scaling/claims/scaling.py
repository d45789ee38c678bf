"""Questions 1 to 3: larger batches, more GPUs, parts of an epoch, bandwidth of gradients."""

import math
from typing import Any

import numpy as np
import pandas as pd

from scaling.claims.claim import (
    HALF,
    NO_TRACE,
    Answer,
    Claim,
    Hypothesis,
    batch,
    extremes,
    label,
    measured,
    most_gpus,
    span,
)
from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.tables.noise import NO_TIME, Noise
from scaling.tables.schema import StudyTables, by_configuration, rows_of

LARGER = Hypothesis(
    "Q1-faster",
    "Larger batches shorten the training time of an epoch on one GPU.",
    test="Training times (batches in memory) at each larger batch and at the smallest, of runs of "
    "one machine. Supported: the larger batch is faster, the 95 % interval of the ratio is above "
    "1; refuted: slower, or the same to 1 %.",
)
FITS = 0.05
"""A model of a step's time is printed only if its relative residuals are at most this."""


def batches(tables: StudyTables) -> Answer:
    """Return the answer to Q1: per recipe, a model of a step's time or throughput; and claims."""
    busy = tables.device_time[[*CELL_KEYS, "busy_seconds"]]
    shares = tables.utilization[[*CELL_KEYS, "loading_share"]]
    times = measured(tables.timing, "epoch_seconds").query("gpus == 1").sort_values("batch_size")
    times = times.merge(busy, "left", CELL_KEYS).merge(shares, "left", CELL_KEYS)
    claims, found = [], list[str]()
    noise = Noise(tables.provenance[tables.provenance["gpus"] == 1], "training_seconds")
    for recipe, cells in times.groupby("recipe", sort=False):
        trained = cells.dropna(subset="training_seconds")
        values = noise.times(trained)["value"]
        if len(trained) > 1:
            claims.append(_larger(f"{recipe}, 1 GPU", trained, noise))
        if len(trained) > 2 and (model := _model(trained.assign(training_seconds=values))):
            found.append(f"With {recipe} {model}.")
        elif len(cells) > 1:
            found.append(_throughput(recipe, cells))
    text = " ".join([*found[:3], *_waits(times)])
    add = "Add 1 to `grid.gpus` and a second size to `grid.batch_sizes`."
    alone = times["recipe"].duplicated().any()
    return Answer(text or None, claims or [LARGER.missing(NO_TRACE if alone else add)])


def _throughput(recipe: object, cells: pd.DataFrame) -> str:
    """Return a sentence with a recipe's lowest and highest throughput over batch sizes."""
    known = cells["samples"].notna().all()
    values = cells["samples"] / cells["epoch_seconds"] if known else cells["epoch_seconds"]
    ends = cells.loc[[*dict.fromkeys([values.idxmin(), values.idxmax()])]]
    figures = zip(values.loc[ends.index], rows_of(ends), strict=True)
    texts = (f"{fmt.significant(value)} with {batch(row)}" for value, row in figures)
    unit = f"{cells['unit'].iloc[0] or 'images'}/s" if known else "seconds an epoch"
    return f"With {recipe} on 1 GPU, {unit}: {' to '.join(texts)}."


def _model(cells: pd.DataFrame) -> str:
    """Return a sentence with the better of two models of a step's time; "" if neither fits.

    Model 1: a constant plus a time per image. Model 2: the longer of the host's and the GPU's time.
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
    """Return [a sentence] on the first recipe whose data wait is at least half an epoch, or []."""
    cells = cells[cells["loading_share"] >= HALF]
    for recipe, own in cells.groupby("recipe", sort=False):
        share = span(own["loading_share"])
        return [f"From {batch(own.iloc[0])} on, data wait takes {share} of an epoch of {recipe}."]
    return []


def _larger(about: str, work: pd.DataFrame, noise: Noise) -> Claim:
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


FASTER = Hypothesis(
    "Q2-faster",
    "Several GPUs finish an epoch faster than one.",
    test="The speedup on the most GPUs, at each batch size, of runs of one machine. Supported: "
    "faster, its 95 % interval is above 1; refuted: slower, or the same to 1 %.",
)


def speedups(tables: StudyTables) -> Answer:
    """Return the answer to Q2: speedups on the most GPUs, and a claim per recipe and strategy."""
    known = tables.speedup[tables.speedup["gpus"] > 1].dropna(subset="speedup")
    claims = [_faster(name, most_gpus(own)) for name, own in by_configuration(known).items()]
    notes = tables.speedup.loc[tables.speedup["gpus"] > 1, "note"]
    why = next((f"{note.capitalize()}." for note in notes if note not in ("", NO_TIME)), "")
    add = "Add 1 and 2 to `grid.gpus`, with the same `grid.batch_sizes`."
    return Answer(_weak_and_strong(tables), claims or [FASTER.missing(why or add)])


def _weak_and_strong(tables: StudyTables) -> str | None:
    """Return sentences on weak-scaling and strong-scaling speedups; None without a speedup."""
    found = by_efficiency(tables.speedup)
    if not found:
        return None
    timed = all(rows["training_speedup"].notna().all() for _, rows in found)
    kind, of = ("training_speedup", "training time") if timed else ("speedup", "epoch time")
    of = of if tables.timing["unit"].fillna("").eq("").any() else "throughput"
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
    count = found[0][1]["gpus"].iloc[0]
    efficiency = ", ".join(span(rows[kind] / count) for _, rows in found[:3])
    text = f"Weak scaling (fixed batch per GPU) of {of} on {fmt.gpus(count)}: {', '.join(why)}. "
    text += f"Efficiency (speedup / {count}): {efficiency}. Strong scaling (fixed global batch): "
    return f"{text}{', '.join(strong[:3]) or 'not measured'}."


def by_efficiency(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return pairs (recipe/strategy, its rows on the most GPUs), the most efficient first."""
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
    """Return a row's speedup, interval and scope as text: `1.87× [1.86, 1.88], 3 machines`."""
    return fmt.judged(row.speedup, row.speedup_low, row.speedup_high, row.scope)


PARTS = {
    "utilization": "matrix products at peak",
    "slower_share": "other kernel time",
    "idle_besides_share": "GPU idle",
    "exposed_share": "exposed messages",
    "waiting_share": "waits for ranks",
    "loading_share": "data wait",
    "unknown_share": "not traced",
}
"""Names of an epoch's parts, in order, by the column of utilization.csv that has their share."""
NO_PEAK = (
    "There is no trace of steps, or no sweep of messages of their sizes on a machine that ran them."
)
WAITS_SHOWN = 0.05
"""Minimum share of an epoch for which the answer mentions waits for ranks."""
COMPUTED = ["utilization", "slower_share"]
"""Columns of utilization.csv with the shares in which kernels compute."""
COMPUTING = Hypothesis(
    "Q3.1-computing",
    "Computing takes most of an epoch on several GPUs.",
    test="Matrix products at peak and other kernel time, as shares of an epoch, by batch size. "
    "Supported: together more than half; refuted: less, also with all that is not traced.",
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
    """Return the answer to Q3.1: an epoch's largest part; claims are about the most GPUs."""
    table = tables.utilization[tables.utilization["gpus"] > 1]
    known = measured(table, "waiting_share").dropna(subset="slower_share")
    claims = [_computing(name, most_gpus(own)) for name, own in by_configuration(known).items()]
    missing = COMPUTING.missing(NO_TRACE if len(table) else "Add 2 or more to `grid.gpus`.")
    return Answer(_largest(table), claims or [missing])


def _largest(table: pd.DataFrame) -> str | None:
    """Return sentences on exposed messages and the largest part, for each recipe and strategy."""
    texts: list[str] = []
    for name, rows in by_configuration(table.dropna(subset="waiting_share")).items():
        median = rows[list(PARTS)].median()
        most = str(median.idxmax())
        share = f"{span(rows['exposed_share'])}{' of an epoch' * (not texts)}"
        part = f"exposed messages take {share}"
        if rows["waiting_share"].max() > WAITS_SHOWN:
            part += f", waits for ranks up to {fmt.percent(rows['waiting_share'].max())}"
        over = ", median over b" * (not texts)
        text = f"the largest part is {PARTS[most]} ({fmt.percent(median[most])}{over})"
        texts.append(f"With {name} {part}; {text}.")
    return " ".join(texts[:3]) or None


def _computing(name: str, shares: pd.DataFrame) -> Claim:
    low = shares[COMPUTED].sum(axis=1)
    known = shares.assign(low=low, high=low + shares["unknown_share"]).sort_values("batch_size")
    cells, about = list(rows_of(known)), f"{name}, {fmt.gpus(shares['gpus'].max())}"
    parts = [(cell, cell.low > HALF, cell.high < HALF) for cell in cells]
    return COMPUTING.claim(about, " ".join(map(_parts, [cells[0], *cells[1:][-1:]])), parts=parts)


def _parts(cell: Any) -> str:
    """Return the shares of one row's epoch as text: computing, and all other parts above 5 %."""
    others = {part: getattr(cell, name) for name, part in PARTS.items() if name not in COMPUTED}
    texts = [f"{fmt.percent(share)} {part}" for part, share in others.items() if share > 0.05]
    return f"{batch(cell)}: {', '.join([f'{fmt.percent(cell.low)} computing', *texts])}."


def bandwidth(tables: StudyTables) -> Answer:
    """Return the answer to Q3.2: lowest and highest share of standalone bandwidth, and claims."""
    table = tables.bandwidth
    found = {name: most_gpus(own) for name, own in by_configuration(table).items()}
    known = {name: own[own["utilization"] <= 1] for name, own in found.items()}
    claims = [_bandwidth(name, own) for name, own in known.items() if len(own)]
    if not claims:
        none = BANDWIDTH.missing(NO_PEAK if len(table) else "Add 2 or more to `grid.gpus`.")
        rates = measured(table, "bandwidth_gb_per_s")
        return Answer(None if rates.empty else _rates(rates), [none])
    worst, best = extremes(pd.concat(known.values(), ignore_index=True), "utilization")
    text = f"Gradients reach {fmt.percent(best.utilization)} of the bandwidth of standalone "
    text += f"all-reduces, {fmt.significant(best.peak_gb_per_s)} GB/s ({label(best)})"
    if worst.utilization < best.utilization:
        text += f", and at least {fmt.percent(worst.utilization)} ({label(worst)})"
    return Answer(f"{text}.", claims)


def _rates(rates: pd.DataFrame) -> str:
    """Return sentences on the lowest and highest bandwidth, when no standalone one is known."""
    worst, best = extremes(rates, "bandwidth_gb_per_s")
    low, high = (fmt.significant(cell.bandwidth_gb_per_s) for cell in (worst, best))
    return (
        f"From {low} GB/s ({label(worst)}) to {high} GB/s ({label(best)}). A message lasts until "
        "the slowest rank joins, so low values are waits. Standalone all-reduces of these sizes "
        "were not measured on the same machine."
    )


def _bandwidth(name: str, cells: pd.DataFrame) -> Claim:
    about = f"{name}, {fmt.gpus(cells['gpus'].max())}"
    worst, best = extremes(cells, "utilization")
    text = f"{fmt.significant(best.bandwidth_gb_per_s)} of {fmt.significant(best.peak_gb_per_s)} "
    text += f"GB/s ({fmt.percent(best.utilization)}) with {batch(best)}"
    if worst.Index != best.Index:
        text += f", {fmt.percent(worst.utilization)} with {batch(worst)}"
    parts = [(cell, cell.utilization >= HALF, True) for cell in rows_of(cells)]
    return BANDWIDTH.claim(about, f"{text}.", parts=parts)
