"""Question 1: what a step costs whatever its batch, and whether that makes small batches slow."""

from typing import Any

import pandas as pd

from scaling import report_format as fmt
from scaling.claims.cells import apart, batch
from scaling.claims.claim import Claim, Evidence, judge, undecided
from scaling.claims.claim_tables import ClaimTables

QUESTION = "Q1"
HALF = 0.5
FIXED = (
    "Cost model fitted to all cells of this recipe and strategy: the 95 % interval of its fixed "
    "seconds of a step, times the steps that the faster batch saves, over the seconds it saves. "
    "Supported: all of the interval is at or above half; refuted: all of it is below half; "
    "undecided: half lies inside, there is no interval, or nothing is saved beyond noise."
)
GAPS = (
    "Seconds of an epoch in which nothing runs on the GPU (gap of a step, lowest and highest over "
    "the seeds, times the steps), at the two batches: what the larger batch saves of them over the "
    "seconds it saves. Supported: at least half by either extreme; refuted: less than half by "
    "both; undecided: between, not traced, or nothing is saved beyond noise."
)


def _ms(seconds: float) -> str:
    return f"{fmt.significant(1e3 * seconds)} ms"


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


def gaps(recipe: str, small: Any, fast: Any, tables: ClaimTables) -> Claim:
    """That gaps between kernels are why `small` is slower than `fast`, by the traced steps."""
    id, file = f"Q1-gaps-{recipe}", tables.file("device_time")
    table = tables["device_time"]
    rows = table[(table["recipe"] == recipe) & (table["gpus"] == 1)]
    rows = rows.drop_duplicates("batch_size").set_index("batch_size")
    both = [rows.loc[b] for b in (small.batch_size, fast.batch_size) if b in rows.index]
    if len(both) < 2 or any(pd.isna(row["gap_seconds"]) for row in both):
        notes = [row["note"] for row in both if pd.isna(row["gap_seconds"]) and row["note"]]
        why = notes[0] if notes else "the device's time was not read"
        lacks = (
            f"{recipe}, 1 GPU: whether gaps between kernels make small batches slow cannot be "
            f"said: {why}."
        )
        return undecided(id, QUESTION, lacks, file, GAPS)
    one, other = both
    seconds, _ = _saved(small, fast)
    least = one["gap_seconds_min"] * small.iterations - other["gap_seconds_max"] * fast.iterations
    most = one["gap_seconds_max"] * small.iterations - other["gap_seconds_min"] * fast.iterations
    median = one["gap_seconds"] * small.iterations - other["gap_seconds"] * fast.iterations
    clear = apart(small, fast, "epoch_seconds_without_loading")
    holds = bool(clear and least >= HALF * seconds)
    fails = bool(clear and most < HALF * seconds)
    figures: dict[str, Any] = {"seconds_saved": seconds, "share_explained": median / seconds}
    for name, row in (("smallest", one), ("fast", other)):
        for part in ("step_seconds", "busy_seconds", "gap_seconds", "kernels"):
            figures[f"{name}_{part}"] = row[part]
    idle = [row["gap_seconds"] / row["step_seconds"] for row in both]
    cause = "are the cause" if holds else "are not the cause" if fails else "may be the cause"
    sentence = (
        f"{recipe}, 1 GPU: gaps between kernels {cause}. With {batch(small)} nothing runs on the "
        f"GPU in {fmt.percent(idle[0])} of a step ({_ms(one['gap_seconds'])} of "
        f"{_ms(one['step_seconds'])}, {one['kernels']:,.0f} kernels), with {batch(fast)} in "
        f"{fmt.percent(idle[1])}; fewer gaps are {fmt.percent(median / seconds)} of the "
        f"{fmt.seconds(seconds)} saved{'' if clear else ', a saving within noise'}."
    )
    return Claim(id, QUESTION, sentence, judge(holds, fails), [Evidence(file, figures, GAPS)])
