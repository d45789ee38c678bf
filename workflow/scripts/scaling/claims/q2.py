"""Q2: more GPUs."""

import pandas as pd

from scaling.claims.claim import Answer, Claim, Hypothesis, batch, extremes, most_gpus, span
from scaling.core import numbers as fmt
from scaling.tables.ratios import UNLIKE
from scaling.tables.schema import StudyTables, by_configuration, rows_of

SOONER = Hypothesis(
    "Q2-faster",
    "Several GPUs finish an epoch sooner than one.",
    test="The speedup on the most GPUs, at each batch size. Supported: above 1 by more than noise; "
    "refuted: below 1 by more.",
)


def speedups(tables: StudyTables) -> Answer:
    """Answer by the speedups on the most GPUs; a claim for each recipe and strategy with ratios."""
    table = tables.speedup
    claims = []
    for name, cells in by_configuration(table[table["gpus"] > 1]).items():
        most = most_gpus(cells.dropna(subset="speedup"))
        if len(most):
            claims.append(_sooner(name, most))
        elif not cells["note"].str.startswith(UNLIKE).any():
            add = "Add 1 to `grid.gpus`, or the batch sizes of one GPU to `grid.batch_sizes`."
            claims.append(SOONER.missing(name, add))
    missing = SOONER.missing("", "Add 2 or more to `grid.gpus`.")
    return Answer(_weak(table), claims or [missing])


def _weak(table: pd.DataFrame) -> str | None:
    """Return the weak speedup of each configuration, and the strong one of the best."""
    found = by_efficiency(table)
    if not found:
        return None
    said = [f"{name} {span(rows['speedup'], fmt.times)}" for name, rows in found[:3]]
    why = (f"{one} (one process launches for all GPUs)" if "/dp " in one else one for one in said)
    best = found[0][1]
    known = best["fixed_global_batch_speedup"].dropna()
    strong = f" At one global batch (strong): {span(known, fmt.times)}." if len(known) else ""
    on = fmt.gpus(best["gpus"].iloc[0])
    return f"Weak scaling: the batch per GPU is fixed. On {on}: {', '.join(why)}.{strong}"


def by_efficiency(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return the cells on the most GPUs by configuration, the most efficient first."""
    known = most_gpus(table[(table["gpus"] > 1) & table["speedup"].notna()])
    return sorted(by_configuration(known).items(), key=lambda one: -one[1]["efficiency"].median())


def _sooner(name: str, most: pd.DataFrame) -> Claim:
    least, best = extremes(most, "speedup")
    ends = fmt.span(least.speedup_low, least.speedup_high)
    sentence = f"{fmt.times(least.speedup)} ({ends}) with {batch(least)}"
    if best.Index != least.Index:
        sentence += f", {fmt.times(best.speedup)} with {batch(best)}"
    parts = [(cell, cell.speedup_low > 1, cell.speedup_high < 1) for cell in rows_of(most)]
    return SOONER.claim(f"{name}, {fmt.gpus(least.gpus)}", f"{sentence}.", parts=parts)
