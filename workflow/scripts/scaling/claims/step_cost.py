"""Question 1: what a step costs whatever its batch, and whether that makes small batches slow."""

from typing import Any

import pandas as pd

from scaling.claims.cells import apart, batch, row_at
from scaling.claims.claim import Claim, Evidence, judge, undecided
from scaling.claims.claim_tables import ClaimTables
from scaling.core import numbers as fmt
from scaling.tables.io import CELL_KEYS

QUESTION = "Q1"
HALF = 0.5
FIXED = (
    "Cost model fitted to all cells of this recipe and strategy: the 95 % interval of its fixed "
    "seconds of a step, times the steps that the faster batch saves, over the seconds it saves. "
    "Supported: all of the interval is at or above half; refuted: all of it is below half; "
    "undecided: half lies inside, there is no interval, or nothing is saved beyond noise."
)
GAPS = (
    "Steps on batches in memory, times the steps of an epoch, at the smallest batch and at the one "
    "where that is shortest: the seconds in which nothing runs on the GPU that the latter saves "
    "(lowest and highest over the seeds), over all seconds it saves. Where the traced steps took "
    "longer than the timed ones the figure is negative: it is shown, and counts as 0, as no gap "
    "can be shorter than none. Supported: at least half by either extreme; refuted: less than half "
    "by both; undecided: between, or not traced."
)


def _ms(seconds: float) -> str:
    return "less than 0.001 ms" if 0 <= seconds < 1e-6 else f"{fmt.significant(1e3 * seconds)} ms"


def _saved(small: Any, fast: Any) -> tuple[float, int]:
    """Seconds without loading, and steps, that the faster batch saves in an epoch."""
    seconds = small.epoch_seconds_without_loading - fast.epoch_seconds_without_loading
    return float(seconds), int(small.iterations - fast.iterations)


def fixed_cost(recipe: str, small: Any, fast: Any, tables: ClaimTables) -> Claim:
    """That a fixed cost of each step is why `small` is slower than `fast`, by the cost model."""
    id, file = f"Q1-fixed-{recipe}", tables.file("cost_model")
    model = tables["cost_model"]
    of_line = (model["recipe"] == recipe) & (model["strategy"] == small.strategy)
    rows = model[of_line & (model["parameter"] == "fixed") & model["value"].notna()]
    if rows.empty:
        lacks = (
            f"{recipe}, 1 GPU: whether a fixed cost of each step makes small batches slow cannot "
            "be said, as no cost model could be fitted."
        )
        return undecided(id, QUESTION, lacks, file, FIXED)
    row = next(rows.itertuples())
    seconds, steps = _saved(small, fast)
    share, low, high = (value * steps / seconds for value in (row.value, row.low, row.high))
    clear = apart(small, fast, "epoch_seconds_without_loading")
    known = pd.notna(high)
    figures = {
        "fixed_seconds": row.value,
        **({"fixed_seconds_low": row.low, "fixed_seconds_high": row.high} if known else {}),
        "steps_saved": steps,
        "seconds_saved": seconds,
        "share_explained": share,
    }
    interval = (
        f"95 % interval {fmt.percent(low)} to {fmt.percent(high)}" if known else "no interval"
    )
    holds = bool(clear and known and low >= HALF)
    fails = bool(clear and known and high < HALF)
    cause = "is the cause" if holds else "is not the cause" if fails else "may be the cause"
    sentence = (
        f"{recipe}, 1 GPU: a fixed cost of each step {cause}. A step costs "
        f"{_ms(row.value)} whatever its batch ({small.strategy}'s cost model); "
        f"{batch(fast)} takes {steps:,} fewer of them than {batch(small)}, and that is "
        f"{fmt.percent(share)} ({interval}) of the {fmt.seconds(seconds)} it saves"
        f"{'' if clear else ', a saving within noise'}."
    )
    return Claim(id, QUESTION, sentence, judge(holds, fails), [Evidence(file, figures, FIXED)])


def gaps(recipe: str, tables: ClaimTables) -> Claim:
    """That gaps between kernels are why small batches are slow on one GPU, by the traced steps."""
    id, file = f"Q1-gaps-{recipe}", tables.file("device_time")
    table = tables["device_time"]
    rows = table[(table["recipe"] == recipe) & (table["gpus"] == 1)].drop_duplicates("batch_size")
    timing = tables["timing"][[*CELL_KEYS, "iterations"]]
    read = rows[rows["gap_seconds"].notna()].merge(timing.dropna(), on=CELL_KEYS)
    if len(read) < 2:
        notes = [note for note in rows["note"] if note] or ["the device's time was not read"]
        lacks = (
            f"{recipe}, 1 GPU: whether gaps between kernels make small batches slow cannot be "
            f"said: {notes[0]}."
        )
        return undecided(id, QUESTION, lacks, file, GAPS)
    for part in ("step_seconds", "gap_seconds", "gap_seconds_min", "gap_seconds_max"):
        read[f"epoch_{part}"] = read[part].clip(lower=0) * read["iterations"]
    small = row_at(read, read["batch_size"].idxmin())
    fast = row_at(read, read["epoch_step_seconds"].idxmin())
    if fast.batch_size == small.batch_size:
        lacks = (
            f"{recipe}, 1 GPU: there is no saving that gaps between kernels could explain, as the "
            f"steps of the smallest batch, {batch(small)}, are the fastest."
        )
        return undecided(id, QUESTION, lacks, file, GAPS)
    saved = small.epoch_step_seconds - fast.epoch_step_seconds
    share = (small.epoch_gap_seconds - fast.epoch_gap_seconds) / saved
    least = (small.epoch_gap_seconds_min - fast.epoch_gap_seconds_max) / saved
    most = (small.epoch_gap_seconds_max - fast.epoch_gap_seconds_min) / saved
    holds, fails = bool(least >= HALF), bool(most < HALF)
    figures: dict[str, Any] = {"seconds_saved": saved, "share_explained": share}
    for name, row in (("smallest", small), ("fast", fast)):
        for part in ("batch_size", "step_seconds", "busy_seconds", "gap_seconds", "kernels"):
            figures[f"{name}_{part}"] = getattr(row, part)
    cause = "are the cause" if holds else "are not the cause" if fails else "may be the cause"
    sentence = (
        f"{recipe}, 1 GPU: gaps between kernels {cause}. With {batch(small)} nothing runs on the "
        f"GPU in {_idle(small)} of a step ({_ms(small.gap_seconds)} of {_ms(small.step_seconds)}, "
        f"{small.kernels:,.0f} kernels), with {batch(fast)} in {_idle(fast)}; fewer gaps are "
        f"{fmt.percent(share)} of the {fmt.seconds(saved)} saved in an epoch. Kernels run for "
        f"{_kernels(small)} of it with {batch(small)} and for {_kernels(fast)} with {batch(fast)}."
    )
    return Claim(id, QUESTION, sentence, judge(holds, fails), [Evidence(file, figures, GAPS)])


def _kernels(row: Any) -> str:
    return fmt.seconds(row.busy_seconds * row.iterations)


def _idle(row: Any) -> str:
    """The share of a step in which nothing runs on the GPU, in words where it is negative."""
    share = fmt.percent(row.gap_seconds / row.step_seconds)
    if row.gap_seconds >= 0:
        return share
    return f"none that could be told ({share}: the traced steps took longer than the timed ones)"
