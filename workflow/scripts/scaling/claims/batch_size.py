"""Question 1: why larger batches are faster or slower, on one GPU of each recipe."""

from typing import Any

import pandas as pd

from scaling.claims import step_cost
from scaling.claims.cells import apart, batch, row_at, times_of
from scaling.claims.claim import Claim, Evidence, judge, undecided
from scaling.claims.claim_tables import ClaimTables
from scaling.core import numbers as fmt
from scaling.report.finding import measured

QUESTION = "Q1"
HALF = 0.5
FASTER = (
    "Of cells that wait for data in less than half of their epoch (in others the GPU works on "
    "meanwhile, and what is left is not the time of the steps): epoch times without loading at the "
    "smallest batch and at the batch where that time is shortest, with their ranges. Supported: "
    "the ranges are disjoint; refuted: the smallest batch is the fastest, and its range and that "
    "of the next fastest are disjoint; undecided: the ranges overlap, or a time was measured once."
)
LOADING = (
    "Of the epoch with loading, the seconds waited for data at the smallest batch and at the one "
    "whose epoch is shortest: what the latter saves of them over the seconds it saves. Supported: "
    "less than half; refuted: half or more; undecided: the ranges of the two epochs overlap or "
    "were measured once."
)
SLOWER = (
    "Epoch times with loading at the largest batch and at the fastest one, with their ranges. "
    "Where they are disjoint: supported if waiting for data is at least half of the difference, "
    "refuted if less. Undecided where the ranges overlap."
)


def claims(tables: ClaimTables) -> list[Claim]:
    """Claims for each recipe on one GPU, from timing.csv, cost_model.csv and device_time.csv."""
    cells = measured(tables["timing"], "epoch_seconds_without_loading")
    # A run on one GPU serves every strategy.
    cells = cells[cells["gpus"] == 1].drop_duplicates(["recipe", "batch_size"])
    made = []
    for recipe, rows in cells.groupby("recipe", sort=False):
        ordered = rows.sort_values("batch_size")
        if len(ordered) > 1:
            made += [
                *_steps(str(recipe), ordered, tables),
                step_cost.gaps(str(recipe), tables),
                *_epochs(str(recipe), ordered, tables),
            ]
    if made:
        return made
    lacks = (
        "Why larger batches are faster or slower cannot be said: no recipe has times of two batch "
        "sizes on one GPU."
    )
    return [undecided("Q1", QUESTION, lacks, tables.file("timing"), FASTER)]


def _steps(recipe: str, ordered: pd.DataFrame, tables: ClaimTables) -> list[Claim]:
    """Claims on the time without loading, where that is the time of the steps."""
    share = ordered["loader_seconds"] / ordered["epoch_seconds"]
    waiting = ", ".join(str(size) for size in ordered["batch_size"][share >= HALF])
    ordered = ordered[share < HALF]
    more = (
        f" Not compared, waiting for data half of their epoch or longer: b\u00a0=\u00a0{waiting}."
        if waiting
        else ""
    )
    if len(ordered) < 2:
        lacks = (
            f"{recipe}, 1 GPU: whether the steps of larger batches are faster cannot be said, as "
            f"fewer than two batch sizes wait for data in less than half of their epoch.{more}"
        )
        file = tables.file("timing")
        return [undecided(f"Q1-faster-{recipe}", QUESTION, lacks, file, FASTER)]
    small = row_at(ordered, ordered["batch_size"].idxmin())
    fast = row_at(ordered, ordered["epoch_seconds_without_loading"].idxmin())
    if fast.batch_size == small.batch_size:
        larger = ordered[ordered["batch_size"] > small.batch_size]
        next_fast = row_at(larger, larger["epoch_seconds_without_loading"].idxmin())
        return [_none_faster(recipe, small, next_fast, more, tables)]
    return [
        _faster(recipe, small, fast, more, tables),
        step_cost.fixed_cost(recipe, small, fast, tables),
    ]


def _epochs(recipe: str, ordered: pd.DataFrame, tables: ClaimTables) -> list[Claim]:
    """Claims on whole epochs: what waiting for data has to do with a larger batch."""
    small = row_at(ordered, ordered["batch_size"].idxmin())
    fast = row_at(ordered, ordered["epoch_seconds"].idxmin())
    largest = row_at(ordered, ordered["batch_size"].idxmax())
    made = []
    if fast.epoch_seconds < small.epoch_seconds:
        made.append(_loading(recipe, small, fast, tables))
    if fast.epoch_seconds < largest.epoch_seconds:
        made.append(_slower(recipe, fast, largest, tables))
    return made


def _none_faster(recipe: str, small: Any, next_fast: Any, more: str, tables: ClaimTables) -> Claim:
    column = "epoch_seconds_without_loading"
    clear = apart(small, next_fast, column)
    figures = times_of(column, smallest=small, next_fast=next_fast)
    sentence = (
        f"{recipe}, 1 GPU: no larger batch is faster. The epoch without loading is shortest with "
        f"the smallest, {fmt.seconds(small.epoch_seconds_without_loading)} with {batch(small)}; "
        f"the next is {fmt.seconds(next_fast.epoch_seconds_without_loading)} with "
        f"{batch(next_fast)}{'' if clear else ', within noise'}.{more}"
    )
    evidence = [Evidence(tables.file("timing"), figures, FASTER)]
    return Claim(f"Q1-faster-{recipe}", QUESTION, sentence, judge(False, clear), evidence)


def _faster(recipe: str, small: Any, fast: Any, more: str, tables: ClaimTables) -> Claim:
    column = "epoch_seconds_without_loading"
    clear = apart(small, fast, column)
    ratio = small.epoch_seconds_without_loading / fast.epoch_seconds_without_loading
    sentence = (
        f"{recipe}, 1 GPU: larger batches are {'' if clear else 'not clearly '}faster. The epoch "
        f"without loading is shortest with {batch(fast)}, "
        f"{fmt.seconds(fast.epoch_seconds_without_loading)} against "
        f"{fmt.seconds(small.epoch_seconds_without_loading)} with {batch(small)}: "
        f"{fmt.times(ratio)} as fast{'' if clear else ', within noise'}."
    )
    used, used_evidence = _utilization(recipe, small, fast, tables)
    evidence = [
        Evidence(tables.file("timing"), times_of(column, smallest=small, fast=fast), FASTER)
    ]
    return Claim(
        f"Q1-faster-{recipe}",
        QUESTION,
        sentence + used + more,
        judge(clear, False),
        evidence + used_evidence,
    )


def _utilization(
    recipe: str, small: Any, fast: Any, tables: ClaimTables
) -> tuple[str, list[Evidence]]:
    """A sentence on the shares of the measured peak that the two cells use, where known."""
    table = measured(tables["utilization"], "utilization_without_loading")
    table = table[(table["recipe"] == recipe) & (table["gpus"] == 1)]
    cells = table.drop_duplicates("batch_size").set_index("batch_size")
    if not {small.batch_size, fast.batch_size} <= set(cells.index):
        return "", []
    low, high = cells.loc[[small.batch_size, fast.batch_size], "utilization_without_loading"]
    figures = {
        "smallest_utilization_without_loading": low,
        "fast_utilization_without_loading": high,
    }
    return (
        f" It uses {fmt.percent(high)} of the measured matrix product peak instead of "
        f"{fmt.percent(low)}.",
        [Evidence(tables.file("utilization"), figures, "Stated beside the times, not tested.")],
    )


def _loading(recipe: str, small: Any, fast: Any, tables: ClaimTables) -> Claim:
    saved, waiting = (
        getattr(small, column) - getattr(fast, column)
        for column in ("epoch_seconds", "loader_seconds")
    )
    clear = apart(small, fast, "epoch_seconds")
    share = waiting / saved
    holds, fails = bool(clear and share < HALF), bool(clear and share >= HALF)
    figures = {
        **times_of("epoch_seconds", smallest=small, fast=fast),
        "smallest_loader_seconds": small.loader_seconds,
        "fast_loader_seconds": fast.loader_seconds,
    }
    waits = (
        f"{fmt.seconds(small.loader_seconds)} of {fmt.seconds(small.epoch_seconds)} are waiting "
        f"for data with {batch(small)}, {fmt.seconds(fast.loader_seconds)} of "
        f"{fmt.seconds(fast.epoch_seconds)} with {batch(fast)}"
    )
    if holds:
        sentence = f"{recipe}, 1 GPU: it is the steps, not the loader, that get faster: {waits}."
    elif fails:
        sentence = (
            f"{recipe}, 1 GPU: it is mostly the wait for data that gets shorter: {waits}, "
            f"{fmt.percent(share)} of the difference."
        )
    else:
        sentence = (
            f"{recipe}, 1 GPU: whether the steps or the loader get faster cannot be said, as the "
            f"epochs with loading do not get clearly shorter: {waits}."
        )
    evidence = [Evidence(tables.file("timing"), figures, LOADING)]
    return Claim(f"Q1-loading-{recipe}", QUESTION, sentence, judge(holds, fails), evidence)


def _slower(recipe: str, best: Any, largest: Any, tables: ClaimTables) -> Claim:
    lost, waiting = (
        getattr(largest, column) - getattr(best, column)
        for column in ("epoch_seconds", "loader_seconds")
    )
    clear = apart(best, largest, "epoch_seconds")
    share = waiting / lost
    holds, fails = bool(clear and share >= HALF), bool(clear and share < HALF)
    figures = {
        **times_of("epoch_seconds", best=best, largest=largest),
        "best_loader_seconds": best.loader_seconds,
        "largest_loader_seconds": largest.loader_seconds,
    }
    epochs = (
        f"{fmt.seconds(largest.epoch_seconds)} with {batch(largest)}, "
        f"{fmt.seconds(best.epoch_seconds)} with {batch(best)}"
    )
    part = (
        f"{fmt.seconds(lost)} longer, with {fmt.seconds(abs(waiting))} "
        f"{'more' if waiting >= 0 else 'less'} of waiting for data"
    )
    if not clear:
        sentence = (
            f"{recipe}, 1 GPU: why the largest batch is slower is not asked, as it is not clearly "
            f"slower: {epochs}, loading included, within noise."
        )
    else:
        cause = "because of the wait for data" if holds else "not because of the wait for data"
        sentence = f"{recipe}, 1 GPU: the largest batch is slower again, {cause}: {epochs}, {part}."
    evidence = [Evidence(tables.file("timing"), figures, SLOWER)]
    return Claim(f"Q1-slower-{recipe}", QUESTION, sentence, judge(holds, fails), evidence)
