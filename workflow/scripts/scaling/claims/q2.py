"""Question 2: strong or weak scaling, from the speedup at one batch per GPU."""

import pandas as pd

from scaling.claims.claim import Answer, Claim, Hypothesis, batch, extremes, most_gpus
from scaling.core import numbers as fmt
from scaling.tables.ratios import UNLIKE
from scaling.tables.schema import StudyTables, by_configuration, rows_of

FASTER = Hypothesis(
    "Q2-faster",
    "Several GPUs finish an epoch sooner than one.",
    test="The speedup on the most GPUs, at each batch size. Supported: above 1 by more than noise; "
    "refuted: below 1 by more.",
)


def answer(tables: StudyTables) -> Answer:
    """Answer by the speedups on the most GPUs; a claim for each recipe and strategy with ratios."""
    table = tables.speedup
    claims = []
    for recipe, strategy, cells in by_configuration(table[table["gpus"] > 1]):
        most = most_gpus(cells.dropna(subset="speedup"))
        if len(most):
            claims.append(_faster(f"{recipe}/{strategy}", most))
        elif not cells["note"].str.startswith(UNLIKE).any():
            add = "Add 1 to `grid.gpus`, or the batch sizes of one GPU to `grid.batch_sizes`."
            claims.append(FASTER.missing(f"{recipe}/{strategy}", add))
    missing = FASTER.missing("", "Add 2 or more to `grid.gpus`.")
    return Answer(_text(table), claims or [missing])


def _text(table: pd.DataFrame) -> str | None:
    """Return the weak speedup of each configuration, and the strong one of the best."""
    found = by_efficiency(table)
    if not found:
        return None
    said = [f"{name} {_span(rows['speedup'])}" for name, rows in found[:3]]
    why = (f"{one} (one process launches for all GPUs)" if "/dp " in one else one for one in said)
    best = found[0][1]
    known = best["fixed_global_batch_speedup"].dropna()
    strong = f" At one global batch (strong): {_span(known)}." if len(known) else ""
    on = fmt.gpus(best["gpus"].iloc[0])
    return f"Weak scaling: the batch per GPU is fixed. On {on}: {', '.join(why)}.{strong}"


def _span(ratios: pd.Series) -> str:
    """Format the smallest and largest of some ratios: `1.83–1.98×`."""
    low, high = fmt.significant(ratios.min()), fmt.times(ratios.max())
    return high if len(ratios) == 1 else f"{low}–{high}"


def by_efficiency(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return the cells on the most GPUs by configuration, the most efficient first."""
    known = most_gpus(table[(table["gpus"] > 1) & table["speedup"].notna()])
    named = [(f"{recipe}/{strategy}", rows) for recipe, strategy, rows in by_configuration(known)]
    return sorted(named, key=lambda one: -one[1]["efficiency"].median())


def _faster(name: str, most: pd.DataFrame) -> Claim:
    least, best = extremes(most, "speedup")
    ends = fmt.span(least.speedup_low, least.speedup_high)
    sentence = f"{fmt.times(least.speedup)} ({ends}) with {batch(least)}"
    if best.Index != least.Index:
        sentence += f", {fmt.times(best.speedup)} with {batch(best)}"
    parts = [(cell, cell.speedup_low > 1, cell.speedup_high < 1) for cell in rows_of(most)]
    return FASTER.claim(f"{name}, {fmt.gpus(least.gpus)}", f"{sentence}.", parts=parts)
