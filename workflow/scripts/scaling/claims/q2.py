"""Question 2: strong or weak scaling, from the speedup at one batch per GPU."""

from typing import Any

import pandas as pd

from scaling.claims.claim import Answer, Claim, Hypothesis, above_one
from scaling.claims.phrases import batch, extremes, span_of_times
from scaling.core import numbers as fmt
from scaling.tables import noise
from scaling.tables.schema import StudyTables, by_configuration, rows_of
from scaling.tables.speedup import UNLIKE

STRONG = "fixed_global_batch_speedup"
WHY_SLOW = " (one process launches for all GPUs)"
"""What DataParallel's host does."""


def answer(tables: StudyTables) -> Answer:
    """Answer by the speedups on the most GPUs; two claims for each recipe and strategy there.

    None for those without any ratio because one GPU ran another program.
    """
    table = tables.speedup
    claims = []
    for recipe, strategy, cells in by_configuration(table[table["gpus"] > 1]):
        known = cells[cells["speedup"].notna()]
        most = known[known["gpus"] == known["gpus"].max()]
        if most.empty and cells["note"].str.startswith(UNLIKE).any():
            continue
        if most.empty:
            add = "Add 1 to `grid.gpus`, or the batch sizes of one GPU to `grid.batch_sizes`."
            claims.append(FASTER.missing(f"{recipe}/{strategy}", add))
            continue
        about = f"{recipe}/{strategy}, {fmt.gpus(most['gpus'].iloc[0])}"
        own = tables.timing.merge(most[["recipe", "strategy"]].drop_duplicates())
        time = {(row.gpus, row.batch_size): row for row in rows_of(own)}
        claims += [_faster(about, most), _larger_batch(about, most, time)]
    missing = FASTER.missing("", "Add 2 or more to `grid.gpus`.")
    return Answer(_text(table), claims or [missing])


def _text(table: pd.DataFrame) -> str | None:
    """Return the weak speedup of each configuration, and the strong one of the best."""
    found = by_efficiency(table)
    if not found:
        return None
    said = ", ".join(
        f"{name} {span_of_times(rows['speedup'])}{WHY_SLOW if name.endswith('/dp') else ''}"
        for name, rows in found[:3]
    )
    weak, (_, best) = "Weak scaling: the batch per GPU is fixed", found[0]
    known = best[STRONG].dropna()
    strong = f" At one global batch (strong): {span_of_times(known)}." if len(known) else ""
    return f"{weak}. On {fmt.gpus(best['gpus'].iloc[0])}: {said}.{strong}"


def by_efficiency(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return the cells on the most GPUs by configuration, the most efficient first."""
    known = table[(table["gpus"] > 1) & table["speedup"].notna()]
    known = known[known["gpus"] == known["gpus"].max()]
    named = [(f"{recipe}/{strategy}", rows) for recipe, strategy, rows in by_configuration(known)]
    return sorted(named, key=lambda one: -one[1]["efficiency"].median())


FASTER = Hypothesis(
    "Q2-faster",
    "Several GPUs finish an epoch sooner than one.",
    table="speedup",
    test="The speedup on the most GPUs, at each batch size. Supported: above 1 by more than noise; "
    "refuted: below 1 by more.",
)


def _faster(about: str, most: pd.DataFrame) -> Claim:
    least, best = extremes(most, "speedup")
    sentence = f"{fmt.times(least.speedup)} ({_ends(least)}) with {batch(least)}"
    if best.Index != least.Index:
        sentence += f", {fmt.times(best.speedup)} with {batch(best)}"
    parts = [(cell, cell.speedup_low > 1, cell.speedup_high < 1) for cell in rows_of(most)]
    return FASTER.claim(about, f"{sentence}.", parts=parts)


LARGER_BATCH = Hypothesis(
    "Q2-batch",
    "A larger batch on each GPU scales better.",
    table="speedup",
    test="On the most GPUs, the speedup at each larger batch and at the smallest. Supported: that "
    "of the larger batch is higher by more than noise; refuted: lower by more.",
)


def _larger_batch(about: str, most: pd.DataFrame, time: dict[tuple[int, int], Any]) -> Claim:
    small, large = extremes(most, "batch_size")
    if len(most) == 1:
        add = f"Only {batch(small)} has a speedup. Add another size to `grid.batch_sizes`."
        return LARGER_BATCH.missing(about, add)
    cells = list(rows_of(most.drop(small.Index)))
    alone, spread = time[1, small.batch_size], time[small.gpus, small.batch_size]
    ratios = [
        noise.ratio([time[1, cell.batch_size], spread], [time[cell.gpus, cell.batch_size], alone])
        for cell in cells
    ]
    sentence = (
        f"Efficiency {fmt.percent(large.efficiency)} with {batch(large)} (speedup {_ends(large)}), "
        f"{fmt.percent(small.efficiency)} with {batch(small)} ({_ends(small)})."
    )
    return LARGER_BATCH.claim(about, sentence, parts=above_one(cells, ratios))


def _ends(cell: Any) -> str:
    return fmt.span(cell.speedup_low, cell.speedup_high)
