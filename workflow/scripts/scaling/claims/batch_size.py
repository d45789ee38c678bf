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
    """Claims for each recipe on one GPU, from timing.csv, cost_model.csv and device_time.csv."""
    cells = measured(tables["timing"], STEPS)
    # A run on one GPU serves every strategy.
    cells = cells[cells["gpus"] == 1].drop_duplicates(["recipe", "batch_size"])
    made = []
    for recipe, rows in cells.groupby("recipe", sort=False):
        ordered = rows.sort_values("batch_size")
        if len(ordered) > 1:
            made += [
                *_steps(str(recipe), ordered, tables),
                _gaps(str(recipe), tables),
                *_epochs(str(recipe), ordered, tables),
            ]
    return made or [tables.missing("Q1", "no_times")]


def _times(column: str, **cells: Any) -> dict[str, Any]:
    """The figures of each named cell: batch size, seconds and their range, count."""
    return columns_of(["batch_size", column, f"{column}_min", f"{column}_max", "count"], **cells)


def _steps(recipe: str, ordered: pd.DataFrame, tables: ClaimTables) -> list[Claim]:
    """Claims on the time without loading, where that is the time of the steps."""
    share = ordered["loader_seconds"] / ordered["epoch_seconds"]
    waiting = ", ".join(str(size) for size in ordered["batch_size"][share >= HALF])
    ordered = ordered[share < HALF]
    if len(ordered) < 2:
        return [tables.missing("Q1-faster", "few_batches", recipe, waiting=waiting)]
    small = row_at(ordered, ordered["batch_size"].idxmin())
    fast, _ = extremes(ordered, STEPS)
    if fast.batch_size > small.batch_size:
        return [
            _faster(recipe, small, fast, waiting, tables),
            _fixed_cost(recipe, small, fast, tables),
        ]
    next_fast, _ = extremes(ordered[ordered["batch_size"] > small.batch_size], STEPS)
    clear = disjoint(small, next_fast, STEPS)
    return [
        tables.claim(
            "Q1-faster",
            _times(STEPS, smallest=small, next_fast=next_fast),
            name=recipe,
            fails=clear,
            case="none_faster",
            small=small,
            fast=next_fast,
            clear=clear,
            waiting=waiting,
        )
    ]


def _faster(recipe: str, small: Any, fast: Any, waiting: str, tables: ClaimTables) -> Claim:
    clear, used = disjoint(small, fast, STEPS), _utilization(recipe, small, fast, tables)
    return tables.claim(
        "Q1-faster",
        _times(STEPS, smallest=small, fast=fast),
        name=recipe,
        holds=clear,
        case="faster",
        shown={"utilization": used} if used else None,
        small=small,
        fast=fast,
        clear=clear,
        used=used,
        waiting=waiting,
    )


def _utilization(recipe: str, small: Any, fast: Any, tables: ClaimTables) -> dict[str, Any]:
    """The shares of the measured peak that the two cells use, where both are known."""
    column = "utilization_without_loading"
    table = measured(tables["utilization"], column)
    table = table[(table["recipe"] == recipe) & (table["gpus"] == 1)]
    known = table.drop_duplicates("batch_size").set_index("batch_size")[column]
    if not {small.batch_size, fast.batch_size} <= set(known.index):
        return {}
    return {
        f"smallest_{column}": known[small.batch_size],
        f"fast_{column}": known[fast.batch_size],
    }


def _fixed_cost(recipe: str, small: Any, fast: Any, tables: ClaimTables) -> Claim:
    """That a fixed cost of each step is why `small` is slower than `fast`, by the cost model."""
    model = tables["cost_model"]
    of_line = (model["recipe"] == recipe) & (model["strategy"] == small.strategy)
    rows = model[of_line & (model["parameter"] == "fixed") & model["value"].notna()]
    if rows.empty:
        return tables.missing("Q1-fixed", "no_model", recipe)
    row = next(rows.itertuples())
    seconds = float(small.epoch_seconds_without_loading - fast.epoch_seconds_without_loading)
    steps = int(small.iterations - fast.iterations)
    share, low, high = (value * steps / seconds for value in (row.value, row.low, row.high))
    clear, known = disjoint(small, fast, STEPS), pd.notna(high)
    return tables.claim(
        "Q1-fixed",
        {
            "fixed_seconds": row.value,
            **({"fixed_seconds_low": row.low, "fixed_seconds_high": row.high} if known else {}),
            "steps_saved": steps,
            "seconds_saved": seconds,
            "share_explained": share,
        },
        name=recipe,
        holds=clear and known and low >= HALF,
        fails=clear and known and high < HALF,
        strategy=small.strategy,
        small=small,
        fast=fast,
        clear=clear,
        interval=(low, high) if known else (),
    )


def _gaps(recipe: str, tables: ClaimTables) -> Claim:
    """That gaps between kernels are why small batches are slow on one GPU, by the traced steps."""
    table = tables["device_time"]
    rows = table[(table["recipe"] == recipe) & (table["gpus"] == 1)].drop_duplicates("batch_size")
    timing = tables["timing"][[*CELL_KEYS, "iterations"]]
    traced = rows[rows["gap_seconds"].notna()].merge(timing.dropna(), on=CELL_KEYS)
    if len(traced) < 2:
        reason = next((note for note in rows["note"] if note), "the device's time was not read")
        return tables.missing("Q1-gaps", "not_traced", recipe, reason=reason)
    for part in ("step_seconds", "gap_seconds", "gap_seconds_min", "gap_seconds_max"):
        traced[f"epoch_{part}"] = traced[part].clip(lower=0) * traced["iterations"]
    small = row_at(traced, traced["batch_size"].idxmin())
    fast, _ = extremes(traced, "epoch_step_seconds")
    if fast.batch_size == small.batch_size:
        return tables.missing("Q1-gaps", "nothing_saved", recipe, small=small)
    saved = small.epoch_step_seconds - fast.epoch_step_seconds
    least = small.epoch_gap_seconds_min - fast.epoch_gap_seconds_max
    most = small.epoch_gap_seconds_max - fast.epoch_gap_seconds_min
    columns = ("batch_size", "step_seconds", "busy_seconds", "gap_seconds", "kernels")
    return tables.claim(
        "Q1-gaps",
        {
            "seconds_saved": saved,
            "share_explained": (small.epoch_gap_seconds - fast.epoch_gap_seconds) / saved,
            **columns_of(columns, smallest=small, fast=fast),
        },
        name=recipe,
        holds=least / saved >= HALF,
        fails=most / saved < HALF,
        small=small,
        fast=fast,
    )


def _epochs(recipe: str, ordered: pd.DataFrame, tables: ClaimTables) -> list[Claim]:
    """Claims on whole epochs: what waiting for data has to do with a larger batch."""
    small, largest = extremes(ordered, "batch_size")
    fast, _ = extremes(ordered, EPOCH)
    made = []
    if fast.epoch_seconds < small.epoch_seconds:
        made.append(_loading(recipe, small, fast, tables))
    if fast.epoch_seconds < largest.epoch_seconds:
        made.append(_slower(recipe, fast, largest, tables))
    return made


def _loading(recipe: str, small: Any, fast: Any, tables: ClaimTables) -> Claim:
    """That the steps get faster with a larger batch, not the wait for data shorter."""
    clear = disjoint(small, fast, EPOCH)
    saved = small.epoch_seconds - fast.epoch_seconds
    share = (small.loader_seconds - fast.loader_seconds) / saved
    return tables.claim(
        "Q1-loading",
        _times(EPOCH, smallest=small, fast=fast)
        | columns_of(["loader_seconds"], smallest=small, fast=fast),
        name=recipe,
        holds=clear and share < HALF,
        fails=clear and share >= HALF,
        small=small,
        fast=fast,
        share=share,
    )


def _slower(recipe: str, best: Any, largest: Any, tables: ClaimTables) -> Claim:
    """That the largest batch is slower than the best because it waits for data."""
    clear = disjoint(best, largest, EPOCH)
    lost = largest.epoch_seconds - best.epoch_seconds
    waiting = largest.loader_seconds - best.loader_seconds
    return tables.claim(
        "Q1-slower",
        _times(EPOCH, best=best, largest=largest)
        | columns_of(["loader_seconds"], best=best, largest=largest),
        name=recipe,
        holds=clear and waiting / lost >= HALF,
        fails=clear and waiting / lost < HALF,
        best=best,
        largest=largest,
        lost=lost,
        waiting=waiting,
    )
