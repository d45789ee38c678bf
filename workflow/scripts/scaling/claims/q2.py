"""Q2: more GPUs."""

from typing import Any

import pandas as pd

from scaling.claims.claim import Answer, Claim, Hypothesis, batch, extremes, most_gpus, span
from scaling.core import numbers as fmt
from scaling.tables.noise import NO_TIME
from scaling.tables.ratios import UNLIKE
from scaling.tables.schema import StudyTables, by_configuration, rows_of

SOONER = Hypothesis(
    "Q2-faster",
    "Several GPUs finish an epoch sooner than one.",
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
            claims.append(_sooner(name, most))
        elif not cells["note"].str.startswith(UNLIKE).any():
            notes = [note for note in cells["note"] if note not in ("", NO_TIME)]
            add = "Add 1 to `grid.gpus`, or the batch sizes of one GPU to `grid.batch_sizes`."
            add = f"{notes[0].capitalize()}." if notes else add
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
    ends = dict.fromkeys(f"{batch(row)}: {line(row)}" for row in (least, best))
    rows = list(rows_of(most))
    parts = [(row, row.verdict == "faster", row.verdict in ("slower", "same")) for row in rows]
    more = max((row.more_runs for row in rows if row.more_runs > 0), default=0)
    told = f"{fmt.plural(more, 'more run')} of each would decide" if more else ""
    about = f"{name}, {fmt.gpus(least.gpus)}"
    return SOONER.claim(about, f"{'; '.join(ends)}.", parts=parts, unclear=told)


def line(row: Any) -> str:
    """Return a row's speedup, its interval and its scope, `1.87× [1.86, 1.88], 3 machines`."""
    return fmt.judged(row.speedup, row.speedup_low, row.speedup_high, row.scope)
