"""Question 3: where the time goes on several GPUs, and how much of the link is used."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables, extremes, measured, row_at
from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.tables import noise
from scaling.tables.communication import (
    BY_SUBTRACTION,
    EXPOSED,
    drop_overlapped_loading,
    preferred_estimates,
)
from scaling.tables.schema import by_configuration, rows_of

HALF = 0.5
LEFT_OUT = "without_communication"
INSTRUMENTS = [estimate for estimate in EXPOSED if estimate != BY_SUBTRACTION]
LOW, HIGH = ["least", "communication_share_low"], ["most", "communication_share_high"]
"""The ends of the share of communication, without noise and with it."""
TRAVELLING = ("profiler", BY_SUBTRACTION)
"""Estimates by preference: the trace, then subtraction, which includes all that does not shrink
with N."""


def parts(tables: ClaimTables) -> list[Claim]:
    """Return three claims for each recipe and strategy on the most GPUs."""
    made = []
    for recipe, strategy, rows in by_configuration(tables["communication"]):
        known = measured(rows, "communication_seconds")
        gpus = (rows if known.empty else known)["gpus"].max()
        about = f"{recipe}/{strategy}, {fmt.gpus(gpus)}"
        cells = _with_shares(known[known["gpus"] == gpus], tables)
        believed = drop_overlapped_loading(cells, tables["timing"], tables["in_memory"])
        made += [
            _computing(about, believed, tables),
            _falls(about, believed, tables),
            _estimates(about, cells, tables),
        ]
    return made


def _with_shares(rows: pd.DataFrame, tables: ClaimTables) -> pd.DataFrame:
    """Add shares of the epoch: data wait, idle, and the range of communication.

    Idle is the part of the steps in which no kernel runs, NaN if no device time was measured.
    Includes only instruments and subtraction without loading: subtraction of whole epochs counts
    loading as communication.
    """
    rows = rows[rows["estimate"].isin(EXPOSED)]
    rows = noise.with_uncertainty(rows, tables["timing"])
    epochs = tables["epoch_parts"]
    epochs = epochs[epochs["work_seconds"].notna()]
    columns = [*CELL_KEYS, "epoch_seconds", "data_wait_seconds"]
    steps = tables["device_time"][[*CELL_KEYS, "step_seconds", "busy_seconds"]]
    rows = rows.merge(epochs[columns], on=CELL_KEYS).merge(steps, how="left", on=CELL_KEYS)
    share = rows["communication_seconds"] / rows["epoch_seconds"]
    unsure = rows["resolution_seconds"].fillna(0) / rows["epoch_seconds"]
    rows[[*LOW, *HIGH]] = pd.concat([share, share - unsure, share, share + unsure], axis=1)
    wait = rows["data_wait_seconds"] / rows["epoch_seconds"]
    idle = (1 - rows["busy_seconds"] / rows["step_seconds"]).clip(lower=0)
    return rows.assign(data_wait_share=wait, idle_share=(1 - wait) * idle)


def _by_batch(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the shares for each batch size, by the preferred estimate of communication.

    An estimate of unknown noise has a range of half to double; a negative one counts as 0 when
    computing the rest. Without a measured idle time, steps without exchange count as compute;
    without these, compute is unknown.
    """
    known = preferred_estimates(cells).sort_values("batch_size")
    doubt = 1 + (noise.LONE_INSTRUMENT - 1) * known["resolution_seconds"].isna()
    low = known[LOW].mul(doubt, axis=0).clip(upper=known[LOW].div(doubt, axis=0))
    high = known[HIGH].mul(doubt, axis=0).clip(lower=known[HIGH].div(doubt, axis=0))
    idle = known["idle_share"].mask(known["idle_share"].isna() & known["estimate"].eq(LEFT_OUT), 0)
    rest = 1 - known["data_wait_share"] - idle
    return known.assign(
        estimate=known["estimate"].map(fmt.words),
        idle_share=idle,
        runs=known["runs"].astype(float).fillna(1),
        computing_share_low=rest - high.max(axis=1).clip(lower=0),
        computing_share_high=rest - low.min(axis=1).clip(lower=0),
        **low,
        **high,
    )


def _computing(about: str, cells: pd.DataFrame, tables: ClaimTables) -> Claim:
    """Claim that compute is most of an epoch for each batch size."""
    parts = _by_batch(cells).dropna(subset="computing_share_low")
    if parts.empty:
        return tables.missing("Q3.1-computing", about)
    # The share of communication at which compute is half of the epoch.
    half = 1 - parts["data_wait_share"] - parts["idle_share"] - HALF
    limits = parts.assign(**dict.fromkeys(LOW + HIGH, half))
    ends = list(parts.iloc[sorted({0, len(parts) - 1})].itertuples())
    return tables.claim(
        "Q3.1-computing",
        about,
        parts=[
            (cell, cell.computing_share_low > HALF, cell.computing_share_high < HALF)
            for cell in rows_of(parts)
        ],
        ratios=_repeats_needed(zip(parts.itertuples(), limits.itertuples(), strict=True)),
        ends=ends,
        small=ends[0],
        large=ends[-1],
    )


def _falls(about: str, cells: pd.DataFrame, tables: ClaimTables) -> Claim:
    """Claim that each larger batch spends a smaller share on communication than the smallest."""
    parts = _by_batch(cells)
    if len(parts) < 2:
        return tables.missing("Q3.1-falls", about)
    small, large = rows_of(parts.iloc[[0, -1]])
    return tables.claim(
        "Q3.1-falls",
        about,
        parts=[
            (
                cell,
                cell.communication_share_high < small.communication_share_low,
                cell.communication_share_low > small.communication_share_high,
            )
            for cell in rows_of(parts.iloc[1:])
        ],
        ratios=_repeats_needed((cell, small) for cell in parts.iloc[1:].itertuples()),
        small=small,
        large=large,
    )


def _repeats_needed(pairs: Iterable[tuple[Any, Any]]) -> list[noise.Ratio]:
    """What would tell shares of communication apart that overlap."""
    found = []
    for pair in pairs:
        apart, clear = max(
            [
                getattr(above, low) - getattr(below, high)
                for low, high in zip(LOW, HIGH, strict=True)
            ]
            for above, below in (pair, pair[::-1])
        )
        if clear <= 0:
            found.append(
                noise.repeats_for_margin(apart, apart - clear, min(cell.runs for cell in pair))
            )
    return found


def _estimates(about: str, cells: pd.DataFrame, tables: ClaimTables) -> Claim:
    """Claim that subtraction, the course's method, agrees with an instrument.

    Noise as large as the instrument's value agrees with anything, and shows nothing.
    """
    direct = cells[cells["estimate"].isin(INSTRUMENTS)]
    direct = direct.sort_values("estimate", key=lambda names: names.map(INSTRUMENTS.index))
    seconds = ["communication_seconds", "resolution_seconds", "runs"]
    direct = direct.drop_duplicates(CELL_KEYS)[[*CELL_KEYS, *seconds, "estimate"]]
    both = cells[(cells["estimate"] == BY_SUBTRACTION) & cells["resolution_seconds"].notna()]
    both = both.merge(direct, on=CELL_KEYS, suffixes=("", "_direct"))
    if both.empty:
        return tables.missing("Q3.1-estimates", about)
    apart = (both["communication_seconds"] - both["communication_seconds_direct"]).abs()
    unsure = both["resolution_seconds"] + both["resolution_seconds_direct"].fillna(0)
    found = both["communication_seconds_direct"].abs()
    differs, small = apart > unsure, unsure < found
    differ = int(differs.sum())
    worst = row_at(both, (apart - unsure).idxmax())
    runs = both[["runs", "runs_direct"]].astype(float).min(axis=1)
    needed = pd.concat([np.maximum(apart, found), unsure, runs], axis=1)[~differs & ~small]
    return tables.claim(
        "Q3.1-estimates",
        about,
        parts=zip(both.itertuples(), ~differs & small, differs, strict=True),
        ratios=[noise.repeats_for_margin(*row) for row in needed.to_numpy()],
        cells=len(both),
        differ=differ,
        worst=worst,
    )


def link(tables: ClaimTables) -> list[Claim]:
    """Claim that gradient messages use at least half of the measured link bandwidth."""
    made = []
    for recipe, strategy, rows in by_configuration(tables["bandwidth"]):
        gpus = rows["gpus"].max()
        about = f"{recipe}/{strategy}, {fmt.gpus(gpus)}"
        cells = measured(rows[rows["gpus"] == gpus], "utilization")
        cells = drop_overlapped_loading(cells, tables["timing"], tables["in_memory"])
        cells = noise.with_uncertainty(cells, tables["timing"])
        # A bandwidth above the peak has a wrong communication time.
        real = cells[~cells["within_noise"] & (cells["utilization"] <= 1)]
        found = [real[real["estimate"] == estimate] for estimate in TRAVELLING]
        known = next((one for one in found if len(one)), None)
        if known is None:
            made.append(tables.missing("Q3.2-travelling", about))
            continue
        worst, best = extremes(known, "utilization")
        traced = best.estimate == "profiler"
        claim = tables.claim(
            "Q3.2-travelling",
            about,
            parts=[
                (cell, cell.utilization >= HALF, traced and cell.utilization < HALF)
                for cell in rows_of(known)
            ],
            best=best,
            worst=worst,
            traced=traced,
        )
        made.append(claim)
    return made
