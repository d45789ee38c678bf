"""Question 3.1: where the time of an epoch goes on several GPUs."""

from typing import Any

import pandas as pd

from scaling.claims.claim import Answer, Claim, Hypothesis
from scaling.claims.phrases import NO_TRACE, batch, measured, row_at, shares, span_of_shares
from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.tables import noise
from scaling.tables.communication import (
    BY_SUBTRACTION,
    EXPOSED,
    drop_overlapped_loading,
    preferred_estimates,
)
from scaling.tables.schema import StudyTables, by_configuration, rows_of

PARTS = {
    "utilization": "arithmetic at peak",
    "slower_share": "kernels below peak",
    "idle_share": "GPU idle",
    "communication_share": "exposed communication",
    "loading_share": "waiting for data",
    "unknown_share": "not known",
}
"""The parts of an epoch in order, by the columns of utilization.csv with their shares."""
COMPUTED = ["utilization", "slower_share"]
"""Those in which kernels compute."""
HALF = 0.5


def answer(tables: StudyTables) -> Answer:
    """Answer by the largest part of an epoch; three claims a configuration on the most GPUs."""
    claims = []
    epochs = measured(tables.epoch_parts, "work_seconds")[[*CELL_KEYS, "epoch_seconds"]]
    for recipe, strategy, rows in by_configuration(tables.communication):
        known = measured(rows, "communication_seconds")
        gpus = (rows if known.empty else known)["gpus"].max()
        about = f"{recipe}/{strategy}, {fmt.gpus(gpus)}"
        own = known[(known["gpus"] == gpus) & known["estimate"].isin(EXPOSED)].merge(epochs)
        cells = noise.with_uncertainty(own, tables.timing)
        parts = tables.utilization.merge(own[CELL_KEYS].drop_duplicates())
        believed = drop_overlapped_loading(cells, tables.timing, tables.in_memory)
        claims += [_computing(about, parts), _falls(about, _ends(believed))]
        claims.append(_estimates(about, cells))
    missing = COMPUTING.missing("", "Add 2 or more to `grid.gpus`.")
    return Answer(_text(tables.utilization), claims or [missing])


def _text(table: pd.DataFrame) -> str | None:
    """Return the largest part of a median epoch and that of communication, on several GPUs."""
    known = table[table["communication_share"].notna() & (table["gpus"] > 1)]
    said = []
    for recipe, strategy, rows in by_configuration(known):
        median = rows[list(PARTS)].median()
        most = str(median.idxmax())
        said.append(
            f"{recipe}/{strategy} {PARTS[most]} ({fmt.percent(median[most])}), communication "
            f"{span_of_shares(rows['communication_share'])}"
        )
    return f"Median over b: {'; '.join(said[:3])}." if said else None


COMPUTING = Hypothesis(
    "Q3.1-computing",
    "Computing takes most of an epoch on several GPUs.",
    table="utilization",
    test="Arithmetic at peak and kernels below it, as shares of the epoch, at each batch size. "
    "Supported: together more than half; refuted: less than half, also with all that is not known.",
    more="a trace",
)


def _computing(about: str, parts: pd.DataFrame) -> Claim:
    low = parts[COMPUTED].sum(axis=1)
    known = parts.assign(low=low, high=low + parts["unknown_share"]).sort_values("batch_size")
    cells = list(rows_of(known[known["slower_share"].notna()]))
    if not cells:
        return COMPUTING.missing(about, NO_TRACE)
    return COMPUTING.claim(
        about,
        " ".join(map(_parts, [cells[0], *cells[1:][-1:]])),
        parts=[(cell, cell.low > HALF, cell.high < HALF) for cell in cells],
    )


def _parts(cell: Any) -> str:
    """Name the computing and all other parts that take more than 5 % of a cell's epoch."""
    others = {part: getattr(cell, name) for name, part in PARTS.items() if name not in COMPUTED}
    said = [f"{fmt.percent(share)} {part}" for part, share in others.items() if share > 0.05]
    return f"{batch(cell)}: {', '.join([f'{fmt.percent(cell.low)} computing', *said])}."


FALLS = Hypothesis(
    "Q3.1-falls",
    "A larger batch spends a smaller share of its epoch on communication.",
    table="communication",
    test="Communication that computing does not hide, over the whole epoch, by the first estimate "
    "that a cell has: steps without synchronisation, traced kernels, subtraction without loading. "
    "Lowest and highest by its noise; where none is known, half to double. Supported: at a larger "
    "batch both are below both of the smallest batch; refuted: both are above.",
)


def _ends(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the preferred estimate of each batch size, its lowest and highest share of the epoch.

    They are half and double of an estimate of unknown noise.
    """
    known = preferred_estimates(cells).sort_values("batch_size")
    half, double = (
        known["communication_seconds"] * factor
        for factor in (1 / noise.LONE_INSTRUMENT, noise.LONE_INSTRUMENT)
    )
    low = known["lowest_seconds"].fillna(half.clip(upper=double))
    high = known["highest_seconds"].fillna(double.clip(lower=half))
    return known.assign(low=low / known["epoch_seconds"], high=high / known["epoch_seconds"])


def _falls(about: str, parts: pd.DataFrame) -> Claim:
    if len(parts) < 2:
        return FALLS.missing(about, NO_TRACE)
    small, *cells = rows_of(parts)
    ends = (f"{shares(cell.low, cell.high)} with {batch(cell)}" for cell in (cells[-1], small))
    return FALLS.claim(
        about,
        f"{', '.join(ends)}.",
        parts=[(cell, cell.high < small.low, cell.low > small.high) for cell in cells],
    )


ESTIMATES = Hypothesis(
    "Q3.1-estimates",
    "Subtracting T(1, b) / N from an epoch gives the communication that instruments measure.",
    table="communication",
    test="In every cell on the most GPUs, subtraction without loading against steps minus steps "
    "without synchronisation; where a strategy cannot leave that out, against traced kernels. They "
    "agree where they differ by no more than the ranges of the two subtracted times and of the "
    "instrument's repeats together. Supported: they agree, and these ranges are smaller than what "
    "the instrument found; refuted: they differ.",
)


def _estimates(about: str, cells: pd.DataFrame) -> Claim:
    """Noise as large as the instrument's value agrees with anything, and shows nothing."""
    instruments = [estimate for estimate in EXPOSED if estimate != BY_SUBTRACTION]
    direct = preferred_estimates(cells, instruments)
    direct = direct[[*CELL_KEYS, "communication_seconds", "resolution_seconds", "estimate"]]
    both = cells[(cells["estimate"] == BY_SUBTRACTION) & cells["resolution_seconds"].notna()]
    both = both.merge(direct, on=CELL_KEYS, suffixes=("", "_direct"))
    if both.empty:
        return ESTIMATES.missing(about, NO_TRACE)
    apart = (both["communication_seconds"] - both["communication_seconds_direct"]).abs()
    unsure = both["resolution_seconds"] + both["resolution_seconds_direct"].fillna(0)
    differs, small = apart > unsure, unsure < both["communication_seconds_direct"].abs()
    worst = row_at(both, (apart - unsure).idxmax())
    read = fmt.significant(worst.communication_seconds_direct)
    if pd.notna(worst.resolution_seconds_direct):
        read += f" ± {fmt.significant(worst.resolution_seconds_direct)}"
    by = "the trace" if worst.estimate_direct == "profiler" else "leaving it out"
    return ESTIMATES.claim(
        about,
        f"Most apart with {batch(worst)}: {fmt.significant(worst.communication_seconds)} ± "
        f"{fmt.seconds(worst.resolution_seconds)} by subtraction, {read} s by {by}.",
        parts=zip(rows_of(both), ~differs & small, differs, strict=True),
    )
