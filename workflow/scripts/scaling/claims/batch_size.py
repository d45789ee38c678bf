"""Question 1: why larger batches are faster or slower, on one GPU of each recipe."""

from typing import Any

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import (
    ClaimTables,
    columns_of,
    disjoint,
    extremes,
    measured,
    row_at,
)
from scaling.core.grid import CELL_KEYS

HALF = 0.5
EPOCH, STEPS = "epoch_seconds", "epoch_seconds_without_loading"


def claims(tables: ClaimTables) -> list[Claim]:
    """Claims for each recipe on one GPU, from timing.csv and device_time.csv."""
    cells = measured(tables["timing"], STEPS)
    # A run on one GPU serves every strategy.
    cells = cells[cells["gpus"] == 1].drop_duplicates(["recipe", "batch_size"])
    made = []
    for recipe, rows in cells.groupby("recipe", sort=False):
        if len(rows) > 1:
            ordered, about = rows.sort_values("batch_size"), f"{recipe}, 1 GPU"
            made += [_faster(about, ordered, tables), _gaps(about, str(recipe), tables)]
            made += _slower(about, ordered, tables)
    return made


def _times(column: str, **cells: Any) -> dict[str, Any]:
    """The figures of each named cell: batch size, seconds and their range, count."""
    return columns_of(["batch_size", column, f"{column}_min", f"{column}_max", "count"], **cells)


def _faster(about: str, ordered: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That the steps of larger batches are faster, where the loader does not set the pace."""
    share = ordered["loader_seconds"] / ordered["epoch_seconds"]
    waiting = ", ".join(str(size) for size in ordered["batch_size"][share >= HALF])
    compared = ordered[share < HALF]
    if len(compared) < 2:
        return tables.claim("Q1-faster", {}, about, case="waiting", waiting=waiting)
    small = next(compared.itertuples())
    fast, _ = extremes(compared[compared["batch_size"] > small.batch_size], STEPS)
    saves = fast.epoch_seconds_without_loading < small.epoch_seconds_without_loading
    clear, used = disjoint(small, fast, STEPS), _utilization(small, fast, tables)
    return tables.claim(
        "Q1-faster",
        _times(STEPS, smallest=small, fast=fast),
        about,
        holds=clear and saves,
        fails=clear and not saves,
        shown={"utilization": used} if used else None,
        small=small,
        fast=fast,
        used=used,
        waiting=waiting,
    )


def _utilization(small: Any, fast: Any, tables: ClaimTables) -> dict[str, Any]:
    """The shares of the measured peak that the two cells use, where both are known."""
    column = "utilization_without_loading"
    table = measured(tables["utilization"], column)
    table = table[(table["recipe"] == small.recipe) & (table["gpus"] == 1)]
    known = table.drop_duplicates("batch_size").set_index("batch_size")[column]
    if not {small.batch_size, fast.batch_size} <= set(known.index):
        return {}
    return {
        f"smallest_{column}": known[small.batch_size],
        f"fast_{column}": known[fast.batch_size],
    }


def _gaps(about: str, recipe: str, tables: ClaimTables) -> Claim:
    """That gaps between kernels are why small batches are slow on one GPU, by the traced steps."""
    table = tables["device_time"]
    rows = table[(table["recipe"] == recipe) & (table["gpus"] == 1)].drop_duplicates("batch_size")
    timing = tables["timing"][[*CELL_KEYS, "iterations"]]
    traced = rows[rows["gap_seconds"].notna()].merge(timing.dropna(), on=CELL_KEYS)
    if len(traced) < 2:
        on_cpu = rows["note"].eq("a CPU runs no kernels").any()
        return tables.missing("Q1-gaps", about, "on_cpu" if on_cpu else "missing")
    for part in ("step_seconds", "busy_seconds", "gap_seconds"):
        traced[f"epoch_{part}"] = traced[part].clip(lower=0) * traced["iterations"]
    small = row_at(traced, traced["batch_size"].idxmin())
    fast, _ = extremes(traced, "epoch_step_seconds")
    saved = small.epoch_step_seconds - fast.epoch_step_seconds
    if saved == 0:
        return tables.claim("Q1-gaps", {}, about, case="nothing_saved", small=small)
    share, least, most = (
        (max(0, least) * small.iterations - max(0, most) * fast.iterations) / saved
        for least, most in (
            (small.gap_seconds, fast.gap_seconds),
            (small.gap_seconds_min, fast.gap_seconds_max),
            (small.gap_seconds_max, fast.gap_seconds_min),
        )
    )
    columns = ("batch_size", "step_seconds", "busy_seconds", "gap_seconds", "kernels")
    return tables.claim(
        "Q1-gaps",
        {
            "seconds_saved": saved,
            "share_explained": share,
            **columns_of(columns, smallest=small, fast=fast),
        },
        about,
        holds=least >= HALF,
        fails=most < HALF,
        small=small,
        fast=fast,
    )


def _slower(about: str, ordered: pd.DataFrame, tables: ClaimTables) -> list[Claim]:
    """That the largest batch is slower than the best, if it is, because it waits for data."""
    _, largest = extremes(ordered, "batch_size")
    best, _ = extremes(ordered, EPOCH)
    lost = largest.epoch_seconds - best.epoch_seconds
    if lost <= 0:
        return []
    clear = disjoint(best, largest, EPOCH)
    share = (largest.loader_seconds - best.loader_seconds) / lost
    claim = tables.claim(
        "Q1-slower",
        _times(EPOCH, best=best, largest=largest)
        | columns_of(["loader_seconds"], best=best, largest=largest),
        about,
        holds=clear and share >= HALF,
        fails=clear and share < HALF,
        best=best,
        largest=largest,
        share=share,
    )
    return [claim]
