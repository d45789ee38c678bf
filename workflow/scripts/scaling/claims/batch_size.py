"""Question 1: why larger batches are faster or slower, on one GPU of each recipe."""

import math

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables, extremes, measured, row_at
from scaling.core.grid import CELL_KEYS
from scaling.tables import noise

HALF = 0.5
EPOCH, WORK = "epoch_seconds", "work_seconds"


def claims(tables: ClaimTables) -> list[Claim]:
    """Return the claims on each recipe on one GPU."""
    times = tables["timing"].merge(
        tables["epoch_parts"].drop(columns=["status", "epoch_seconds"]),
        on=CELL_KEYS,
        suffixes=("", "_work"),
    )
    cells = measured(times, EPOCH)
    # A run on one GPU serves every strategy.
    cells = cells[cells["gpus"] == 1].drop_duplicates(["recipe", "batch_size"])
    made = []
    for recipe, rows in cells.groupby("recipe", sort=False):
        if len(rows) > 1:
            ordered, about = rows.sort_values("batch_size"), f"{recipe}, 1 GPU"
            made += [_faster(about, ordered, tables), _gaps(about, str(recipe), tables)]
            made += _slower(about, ordered, tables)
    return made


def _faster(about: str, ordered: pd.DataFrame, tables: ClaimTables) -> Claim:
    """Claim that steps of each larger batch are faster, data waits excluded."""
    numbers = {"count_work": "count", "runs_work": "runs"}
    compared = ordered[ordered[WORK].notna()].drop(columns=["count", "runs"])
    compared = compared.rename(columns=numbers)
    if len(compared) < 2:
        return tables.missing("Q1-faster", about)
    small = next(compared.itertuples())
    larger = compared.iloc[1:]
    fast, _ = extremes(larger, WORK)
    cells = list(larger.itertuples())
    ratios = [noise.ratio([small], [cell], WORK) for cell in cells]
    return tables.of_ratios("Q1-faster", about, cells, ratios, small=small, fast=fast)


def _gaps(about: str, recipe: str, tables: ClaimTables) -> Claim:
    """Claim that small batches are launch-bound on one GPU, from traced steps."""
    table = tables["device_time"]
    rows = table[(table["recipe"] == recipe) & (table["gpus"] == 1)].drop_duplicates("batch_size")
    timing = tables["timing"][[*CELL_KEYS, "iterations"]]
    traced = rows[rows["gap_seconds"].notna()].merge(timing.dropna(), on=CELL_KEYS)
    if len(traced) < 2:
        return tables.missing("Q1-gaps", about, notes=list(rows["note"]))
    traced["epoch_step_seconds"] = traced["step_seconds"] * traced["iterations"]
    small = row_at(traced, traced["batch_size"].idxmin())
    fast, _ = extremes(traced, "epoch_step_seconds")
    saved = small.epoch_step_seconds - fast.epoch_step_seconds
    if saved == 0:
        return tables.claim("Q1-gaps", about, case="nothing_saved", small=small)
    share, least, most = (
        (max(0, of_small) * small.iterations - max(0, of_fast) * fast.iterations) / saved
        for of_small, of_fast in (
            (small.gap_seconds, fast.gap_seconds),
            (small.gap_seconds_min, fast.gap_seconds_max),
            (small.gap_seconds_max, fast.gap_seconds_min),
        )
    )
    seeds = min(small.count, fast.count)
    noisy = f"between {seeds} seeds" if seeds > 1 else ""
    unknown = noise.LONE_INSTRUMENT if seeds == 1 else 1.0
    return tables.claim(
        "Q1-gaps",
        about,
        holds=least / unknown >= HALF,
        fails=most * unknown < HALF,
        ratios=[noise.Ratio(math.nan, math.nan, noisy)],
        seconds_saved=saved,
        share_explained=share,
        small=small,
        fast=fast,
    )


def _slower(about: str, ordered: pd.DataFrame, tables: ClaimTables) -> list[Claim]:
    """Claim that the largest batch, if slower than the fastest, is slowed by data waits."""
    _, largest = extremes(ordered, "batch_size")
    best, _ = extremes(ordered, EPOCH)
    lost = largest.epoch_seconds - best.epoch_seconds
    if lost <= 0:
        return []
    if pd.isna([largest.work_seconds, best.work_seconds]).any():
        return [tables.missing("Q1-slower", about)]
    slower = noise.ratio([largest], [best], EPOCH)
    share = (largest.data_wait_seconds - best.data_wait_seconds) / lost
    claim = tables.claim(
        "Q1-slower",
        about,
        holds=slower.low > 1 and share >= HALF,
        fails=slower.low > 1 and share < HALF,
        ratios=[slower],
        share_explained=share,
        best=best,
        largest=largest,
    )
    return [claim]
