"""Answer questions 1 to 3: larger batches, more GPUs, parts of an epoch, bandwidth of gradients."""

import numpy as np
import pandas as pd

from scaling.claims.claim import (
    Answer,
    Claim,
    Hypothesis,
    batch,
    extremes,
    label,
    measured,
    most_gpus,
    nearest,
    of_grid,
    on_several_gpus,
    span,
    weak_scaling,
)
from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.tables.epoch_parts import exchange
from scaling.tables.noise import Noise
from scaling.tables.schema import StudyTables, by_configuration, rows_of

LARGER = Hypothesis(
    "Q1-faster",
    "Larger batches shorten the training time of an epoch on one GPU.",
    test="Training times (batches in memory) at each larger batch and at the smallest, of runs of "
    "one machine. Supported: the larger batch is faster, the 95 % interval of the ratio is above "
    "1; refuted: slower, or the same to 1 %.",
)
COMPARED = {"faster": "{} is faster than {}", "": "{} was faster than {}, without an interval"}
"""Words that compare two batch sizes, by the verdict on the ratio of their throughputs."""
HALF = 0.5
FITS = 0.05
"""Largest relative error with which the linear fit to step times (`_model`) is reported."""


def batches(tables: StudyTables) -> Answer:
    """Return the answer to Q1: for each recipe a fit of step times or, without fit, throughputs."""
    shares = tables.utilization[[*CELL_KEYS, "loading_share", "idle_besides_share"]]
    times = measured(on_several_gpus(tables.timing), "epoch_seconds").query("gpus == 1")
    times = times.sort_values("batch_size", kind="stable").merge(shares, "left", CELL_KEYS)
    claims, found = [], list[str]()
    ran = tables.provenance[tables.provenance["gpus"] == 1]
    noise = Noise(ran, "training_seconds")
    for recipe, cells in times.groupby("recipe", sort=False):
        trained = cells.dropna(subset="training_seconds")
        values = noise.times(trained)["value"]
        if len(trained) > 1:
            claims.append(_larger(f"{recipe}, 1 GPU", trained, noise))
        if len(trained) > 2 and (model := _model(trained.assign(training_seconds=values))):
            found.append(f"With {recipe} {model}.")
        elif len(cells) > 1:
            found.append(_throughput(recipe, cells, Noise(ran, "epoch_seconds")))
    found = found[:2]
    for recipe, cells in [*times[times["loading_share"] >= HALF].groupby("recipe", sort=False)][:1]:
        share = f"{span(cells['loading_share'])} of an epoch of {recipe}"
        found.append(f"From {batch(cells.iloc[0])} on, data wait takes {share}.")
    return Answer(" ".join(found) or None, claims)


def _throughput(recipe: object, cells: pd.DataFrame, noise: Noise) -> str:
    """Return a sentence that compares the batch sizes of highest and lowest throughput."""
    known = bool(cells["samples"].notna().all())
    values = cells["samples"] / cells["epoch_seconds"] if known else cells["epoch_seconds"]
    ordered = cells.assign(value=values).sort_values("value", ascending=not known)
    best, *_, worst = rows_of(ordered)
    work = best.samples / worst.samples if known else 1.0
    ratio = next(rows_of(noise.ratios(ordered.tail(1), ordered.head(1), work)))
    words = COMPARED.get(ratio.verdict, "{} and {} do not differ measurably")
    if ratio.note:
        words = f"{{}} and {{}} are not compared: {ratio.note.removeprefix('no ratio: ')}"
    unit = f"{cells['unit'].iloc[0] or 'images'}/s" if known else "seconds an epoch"
    idle = f", GPU idle {fmt.percent(worst.idle_besides_share)}, waiting for the host"
    idle *= bool(worst.idle_besides_share > HALF / 2)
    both = words.format(
        f"{batch(best)} ({fmt.significant(best.value)} {unit})",
        f"{batch(worst)} ({fmt.significant(worst.value)}{idle})",
    )
    return f"With {recipe}, {both}."


def _model(cells: pd.DataFrame) -> str:
    """Fit step times by a constant plus a time per image. Return a sentence; "" for a bad fit."""
    seconds, *work = cells[["training_seconds", "iterations", "samples"]].to_numpy(float).T
    shares = np.stack(work, axis=1) / seconds[:, None]
    step, image = np.linalg.lstsq(shares, np.ones(len(cells)))[0]
    if min(step, image) <= 0 or np.abs(shares @ [step, image] - 1).max() > FITS:
        return ""
    parts = (fmt.significant(1e3 * step), fmt.significant(1e6 * image))
    return "a step takes {} ms plus {} µs per image; larger batches need fewer steps".format(*parts)


def _larger(about: str, work: pd.DataFrame, noise: Noise) -> Claim:
    larger = work.iloc[1:]
    small = larger[CELL_KEYS].assign(batch_size=work["batch_size"].iloc[0])
    ratios = noise.ratios(small, larger)
    ratio, notes = ratios["ratio"].max(), ratios["note"]
    parts = [
        (cell, own == "faster", own in ("slower", "same"))
        for cell, own in zip(rows_of(larger), ratios["verdict"], strict=True)
    ]
    if pd.isna(ratio):
        return LARGER.claim(about, "Not compared.", parts=parts, unclear=notes.iloc[0])
    best, first = larger[ratios["ratio"] == ratio].iloc[0], work.iloc[0]
    text = f"{batch(best)} trains an epoch {fmt.times(ratio)} as fast as {batch(first)}."
    return LARGER.claim(about, text, parts=parts)


FASTER = Hypothesis(
    "Q2-faster",
    "Several GPUs train faster than one.",
    test="The speedup on the most GPUs, at each batch size, of runs of one machine. Supported: "
    "faster, its 95 % interval is above 1; refuted: slower, or the same to 1 %.",
)


def speedups(tables: StudyTables) -> Answer:
    """Return the answer to Q2: speedups on the most GPUs, with a claim per recipe and strategy."""
    known = tables.speedup[tables.speedup["gpus"] > 1].dropna(subset="speedup")
    claims = [_faster(name, most_gpus(own)) for name, own in by_configuration(known).items()]
    return Answer(_weak_and_strong(tables), claims)


def _weak_and_strong(tables: StudyTables) -> str | None:
    """Return sentences on weak-scaling and strong-scaling speedups; None without a speedup."""
    found = by_efficiency(tables.speedup)
    if not found:
        return None
    kind, of = weak_scaling(pd.concat([rows for _, rows in found]), tables.timing)
    weak = [f"{name} {span(rows[kind], fmt.times)}" for name, rows in found[:3]]
    why = (f"{one} (one process launches for all GPUs)" if "/dp " in one else one for one in weak)
    strong = [
        f"{fmt.times(row.fixed_global_batch_speedup)} ({label(row)})"
        for row in rows_of(tables.speedup.dropna(subset="fixed_global_batch_speedup"))
        if row.gpus > 1
    ]
    strong += [
        f"{fmt.times(row.speedup)} ({label(row)}, training to {fmt.percent(row.target_accuracy)})"
        for row in rows_of(most_gpus(tables.trained_to_accuracy.dropna(subset="speedup")))
    ]
    count = found[0][1]["gpus"].iloc[0]
    efficiency = ", ".join(span(rows[kind] / count) for _, rows in found[:3])
    others = f" and {len(found) - 3} less efficient (Table 1)" * (len(found) > 3)
    text = f"Weak scaling (fixed batch per GPU) of {of} on {fmt.gpus(count)}: {', '.join(why)}"
    text += f"{others}. "
    text += f"Efficiency (speedup / {count}), in this order: {efficiency}. "
    text += "Strong scaling (fixed global batch) of epochs: "
    return f"{text}{', '.join(strong[:4]) or 'not measured (key grid.strong_scaling)'}."


def by_efficiency(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return pairs (recipe/strategy, rows on the most GPUs), sorted by decreasing efficiency."""
    known = most_gpus(table[(table["gpus"] > 1) & table["speedup"].notna()])
    return sorted(by_configuration(known).items(), key=lambda one: -one[1]["efficiency"].median())


def _faster(name: str, most: pd.DataFrame) -> Claim:
    rows = list(rows_of(most))
    texts = dict.fromkeys(
        f"{batch(row)}: {fmt.judged(row.speedup, row.speedup_low, row.speedup_high, row.scope)}"
        for row in extremes(most, "speedup")
    )
    parts = [(row, row.verdict == "faster", row.verdict in ("slower", "same")) for row in rows]
    undecided, needed = most[most["more_runs"] > 0].sort_values("more_runs"), ""
    for first in rows_of(undecided.head(1)):
        others = ", the others at least as many" * (len(undecided) > 1)
        needed = f"{batch(first)} needs {fmt.plural(first.more_runs, 'more run')} of each{others}"
    about = f"{name}, {fmt.gpus(rows[0].gpus)}"
    return FASTER.claim(about, f"{'; '.join(texts)}.", parts=parts, unclear=needed)


PARTS = {
    "utilization": "matrix products at peak rate",
    "slower_share": "kernels below peak rate",
    "computing_share": "computing kernels",
    "idle_besides_share": "GPU idle",
    "exposed_share": "exposed messages",
    "waiting_share": "waits for ranks",
    "loading_share": "data wait",
    "unknown_share": "not traced",
}
"""Names of the parts of an epoch, in order, by column of utilization.csv."""


def parts(tables: StudyTables) -> Answer:
    """Return the answer to Q3.1: share of communication, and the largest part of an epoch."""
    shares = tables.utilization[[*CELL_KEYS, *PARTS]].dropna(subset="waiting_share")
    sent = of_grid(exchange(tables.communication), tables.timing)
    known, texts = sent.merge(shares, on=CELL_KEYS), list[str]()
    for name, rows in by_configuration(known.dropna(subset="exchange_share")).items():
        one = nearest(most_gpus(rows)).iloc[0]
        most = str(one[list(PARTS)].astype(float).idxmax())
        of = " of the training time" * (not texts)
        what = "communication takes" if rows["delay_seconds"].any() else "exposed messages take"
        text = f"With {name} {what} {span(rows['exchange_share'])}{of}; "
        text += f"at {one['gpus']} × {one['batch_size']} the largest part of an epoch is "
        texts.append(f"{text}{PARTS[most]} ({fmt.percent(one[most])}).")
    return Answer(" ".join(texts[:3]) or None)


def bandwidth(tables: StudyTables) -> Answer:
    """Return the answer to Q3.2: bandwidth of gradient messages in training, and sent alone."""
    known = most_gpus(tables.bandwidth.dropna(subset="utilization"))
    waits = " Messages include waits for the slowest rank, as no start skew was recorded."
    waits *= bool(tables.costs["message_waits"].eq(True).any())
    if known.empty:
        rates = measured(tables.bandwidth, "bandwidth_gb_per_s")["bandwidth_gb_per_s"]
        ends = " to ".join(fmt.significant(end) for end in (rates.min(), rates.max()))
        return Answer(None if rates.empty else f"{ends} GB/s.{waits}")
    one = next(rows_of(nearest(known[known["recipe"] == known["recipe"].iloc[-1]])))
    rate, peak = map(fmt.significant, (one.bandwidth_gb_per_s, one.peak_gb_per_s))
    text = f"In training, gradients of {label(one)} reach {rate} GB/s: "
    text += f"{fmt.percent(one.utilization)} of the {peak} GB/s that the same messages reach alone."
    copies = tables.peaks.query("quantity == 'gpu_to_gpu_copy' and peak")["value"]
    if len(copies):
        text += f" A large copy between two GPUs reaches {fmt.rate(copies.median(), 'B/s')}."
    worst, best = extremes(known, "utilization")
    shares = (f"{fmt.percent(row.utilization)} ({label(row)})" for row in (worst, best))
    text += f" Shares are {' to '.join(shares)}." * (len(known) > 1)
    return Answer(text + waits)
