"""Question 3.1: where the time of an epoch goes on several GPUs."""

from typing import Any

import numpy as np
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
    "slower_share": "slower kernels",
    "idle_share": "GPU idle",
    "communication_share": "exposed communication",
    "loading_share": "waiting for data",
    "unknown_share": "not known",
}
"""The parts of an epoch in order, by the columns of utilization.csv with their shares."""
HALF = 0.5


def answer(tables: StudyTables) -> Answer:
    """Answer by the largest part of an epoch; three claims a configuration on the most GPUs."""
    claims = []
    for recipe, strategy, rows in by_configuration(tables.communication):
        known = measured(rows, "communication_seconds")
        gpus = (rows if known.empty else known)["gpus"].max()
        about = f"{recipe}/{strategy}, {fmt.gpus(gpus)}"
        cells = _with_shares(known[known["gpus"] == gpus], tables)
        believed = _by_batch(drop_overlapped_loading(cells, tables.timing, tables.in_memory))
        claims += [_computing(about, believed), _falls(about, believed)]
        claims.append(_estimates(about, cells))
    missing = COMPUTING.missing("", "Add 2 or more to `grid.gpus`.")
    return Answer(_text(tables.utilization), claims or [missing])


def _text(table: pd.DataFrame) -> str | None:
    """Return the largest part of an epoch and that of communication, on several GPUs."""
    known = table[table["communication_share"].notna() & (table["gpus"] > 1)]
    said = []
    for recipe, strategy, rows in by_configuration(known):
        median = rows[list(PARTS)].median()
        most = str(median.idxmax())
        said.append(
            f"{recipe}/{strategy} {PARTS[most]} ({fmt.percent(median[most])}), communication "
            f"{span_of_shares(rows['communication_share'])}"
        )
    return f"Mostly: {'; '.join(said[:3])}." if said else None


def _with_shares(rows: pd.DataFrame, tables: StudyTables) -> pd.DataFrame:
    """Add shares of the epoch: data wait, idle, and communication with its uncertainty.

    Idle is the part of the steps in which no kernel runs, NaN if no device time was measured.
    Includes only instruments and subtraction without loading: subtraction of whole epochs counts
    loading as communication.
    """
    rows = noise.with_uncertainty(rows[rows["estimate"].isin(EXPOSED)], tables.timing)
    epochs = measured(tables.epoch_parts, "work_seconds")
    columns = [*CELL_KEYS, "epoch_seconds", "data_wait_seconds"]
    steps = tables.device_time[[*CELL_KEYS, "step_seconds", "busy_seconds"]]
    rows = rows.merge(epochs[columns], on=CELL_KEYS).merge(steps, how="left", on=CELL_KEYS)
    wait = rows["data_wait_seconds"] / rows["epoch_seconds"]
    return rows.assign(
        share=rows["communication_seconds"] / rows["epoch_seconds"],
        unsure=rows["resolution_seconds"] / rows["epoch_seconds"],
        wait=wait,
        idle=(1 - wait) * (1 - rows["busy_seconds"] / rows["step_seconds"]).clip(lower=0),
        runs=rows["runs"].astype(float).fillna(1),
    )


def _by_batch(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the range of shares for each batch size, by the preferred estimate.

    An estimate of unknown noise has a range of half to double; a negative one counts as 0 when
    computing the rest. Without a measured idle time, steps without exchange count as compute;
    without these, compute is unknown.
    """
    known = preferred_estimates(cells).sort_values("batch_size")
    share, unsure = known["share"], known["unsure"]
    half, double = share / noise.LONE_INSTRUMENT, share * noise.LONE_INSTRUMENT
    low = (share - unsure).fillna(half.clip(upper=double))
    high = (share + unsure).fillna(half.clip(lower=double))
    left_out = known["estimate"].eq("without_communication")
    idle = known["idle"].mask(known["idle"].isna() & left_out, 0)
    rest = 1 - known["wait"] - idle
    return known.assign(
        idle=idle,
        low=low,
        high=high,
        computing_low=rest - high.clip(lower=0),
        computing_high=rest - low.clip(lower=0),
    )


COMPUTING = Hypothesis(
    "Q3.1-computing",
    "Computing takes most of an epoch on several GPUs.",
    table="epoch_parts",
    test="Data wait is what an epoch takes longer than on batches in memory. Idle are its steps "
    "while no kernel runs. Communication: see the claim on its share, with its two ends. Computing "
    "is the rest. Supported: more than half by both ends; refuted: less than half by both. At each "
    "batch size.",
)


def _computing(about: str, parts: pd.DataFrame) -> Claim:
    cells = list(rows_of(parts.dropna(subset="computing_low")))
    if not cells:
        return COMPUTING.missing(about, NO_TRACE)
    # To the share of communication at which compute is half of the epoch.
    distances = [abs(cell.share - (1 - cell.wait - cell.idle - HALF)) for cell in cells]
    return COMPUTING.claim(
        about,
        " ".join(map(_parts, [cells[0], *cells[1:][-1:]])),
        parts=[(cell, cell.computing_low > HALF, cell.computing_high < HALF) for cell in cells],
        ratios=[
            noise.repeats_for_margin(distance, cell.unsure, cell.runs)
            for cell, distance in zip(cells, distances, strict=True)
            if cell.computing_low <= HALF <= cell.computing_high
        ],
    )


def _parts(cell: Any) -> str:
    """Name the parts of a cell's epoch, communication and idling above 1 % of it."""
    said = [f"{shares(cell.computing_low, cell.computing_high)} computing"]
    if cell.high > 0.01:
        said.append(f"{shares(cell.low, cell.high)} communication")
    said.append(f"{shares(cell.wait)} waiting")
    if cell.idle > 0.01:
        said.append(f"{shares(cell.idle)} idle")
    return f"{batch(cell)}: {', '.join(said)}."


FALLS = Hypothesis(
    "Q3.1-falls",
    "A larger batch spends a smaller share of its epoch on communication.",
    table="communication",
    test="Communication that computing does not hide, over the whole epoch, by the first estimate "
    "that a cell has: steps without synchronisation, traced kernels, subtraction without loading. "
    "Lowest and highest by its noise; where none is known, half to double. Supported: at a larger "
    "batch both are below both of the smallest batch; refuted: both are above.",
)


def _falls(about: str, parts: pd.DataFrame) -> Claim:
    if len(parts) < 2:
        return FALLS.missing(about, NO_TRACE)
    small, *cells = rows_of(parts)
    ends = (f"{shares(cell.low, cell.high)} with {batch(cell)}" for cell in (cells[-1], small))
    return FALLS.claim(
        about,
        f"{', '.join(ends)}.",
        parts=[(cell, cell.high < small.low, cell.low > small.high) for cell in cells],
        ratios=[
            noise.repeats_for_margin(
                abs(cell.share - small.share),
                cell.unsure + small.unsure,
                min(cell.runs, small.runs),
            )
            for cell in cells
            if cell.low <= small.high and small.low <= cell.high
        ],
        unclear="; the ranges overlap",
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
    direct = direct[[*CELL_KEYS, "communication_seconds", "resolution_seconds", "runs", "estimate"]]
    both = cells[(cells["estimate"] == BY_SUBTRACTION) & cells["resolution_seconds"].notna()]
    both = both.merge(direct, on=CELL_KEYS, suffixes=("", "_direct"))
    if both.empty:
        return ESTIMATES.missing(about, NO_TRACE)
    apart = (both["communication_seconds"] - both["communication_seconds_direct"]).abs()
    unsure = both["resolution_seconds"] + both["resolution_seconds_direct"].fillna(0)
    found = both["communication_seconds_direct"].abs()
    differs, small = apart > unsure, unsure < found
    worst = row_at(both, (apart - unsure).idxmax())
    runs = both[["runs", "runs_direct"]].astype(float).min(axis=1)
    needed = pd.concat([np.maximum(apart, found), unsure, runs], axis=1)[~differs & ~small]
    read = fmt.significant(worst.communication_seconds_direct)
    if pd.notna(worst.resolution_seconds_direct):
        read += f" ± {fmt.significant(worst.resolution_seconds_direct)}"
    by = "the trace" if worst.estimate_direct == "profiler" else "leaving it out"
    return ESTIMATES.claim(
        about,
        f"Most apart with {batch(worst)}: {fmt.significant(worst.communication_seconds)} ± "
        f"{fmt.seconds(worst.resolution_seconds)} by subtraction, {read} s by {by}.",
        parts=zip(rows_of(both), ~differs & small, differs, strict=True),
        ratios=[noise.repeats_for_margin(*row) for row in needed.to_numpy()],
    )
