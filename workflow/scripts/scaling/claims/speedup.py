"""Question 2: which scaling it is, by what the three views of the speedup measure."""

from typing import Any

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables, columns_of, extremes, row_at
from scaling.core import numbers as fmt
from scaling.tables import noise
from scaling.tables.schema import by_configuration
from scaling.tables.timing import with_single_gpu

ROUNDING = 1e-9


def claims(tables: ClaimTables) -> list[Claim]:
    """Three claims for each recipe and strategy on several GPUs, from speedup.csv."""
    table = tables["speedup"]
    made = []
    for recipe, strategy, cells in by_configuration(table[table["gpus"] > 1]):
        name, known = f"{recipe}/{strategy}", cells[cells["speedup"].notna()]
        if known.empty:
            made.append(tables.missing("Q2", "no_speedup", name))
            continue
        most = known[known["gpus"] == known["gpus"].max()]
        made += [
            _one_measurement(name, known, tables),
            _other_training(name, most, tables),
            _larger_batch(name, most, tables),
        ]
    return made or [tables.missing("Q2", "one_gpu")]


def _one_measurement(name: str, known: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That “strong” and “weak” are two names of one measurement."""
    cells = with_single_gpu(known, tables["timing"], "batch_size")
    cells["ratio"] = cells["weak_speedup"] / cells["speedup"]
    cells = cells[cells["ratio"].notna() & cells["single_iterations"].notna()]
    if cells.empty:
        return tables.missing("Q2-names", "no_steps", name)
    above, below = cells["gpus"] / cells["single_iterations"], 1 / cells["single_iterations"]
    too_high = cells["ratio"] > 1 + above + ROUNDING
    outside = cells[too_high | (cells["ratio"] < 1 - below - ROUNDING)]
    figures: dict[str, Any] = {"cells": len(cells)}
    for view, column in (
        ("speedup", "speedup"),
        ("weak_speedup", "weak_speedup"),
        ("weak_over_strong", "ratio"),
    ):
        figures |= {f"{view}_min": cells[column].min(), f"{view}_max": cells[column].max()}
    apart = (cells["ratio"] - 1).abs()
    farthest = None
    if len(outside):
        farthest = row_at(cells, apart[outside.index].idxmax())
        figures |= {"outside": len(outside), "worst": fmt.cell_name(farthest)}
    return tables.claim(
        "Q2-names",
        figures,
        name=name,
        holds=outside.empty,
        fails=len(outside),
        apart=apart.max(),
        farthest=farthest,
    )


def _other_training(name: str, most: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That the speedup at a fixed global batch, which trains the same, is another one."""
    timing = tables["timing"]
    keys = {f"single_{key}": f"same_{key}" for key in timing.columns}
    cells = most.assign(global_batch_size=most["gpus"] * most["batch_size"])
    cells = with_single_gpu(cells, timing, "global_batch_size").rename(columns=keys)
    cells = with_single_gpu(cells, timing, "batch_size")
    cells = cells[cells["fixed_global_batch_speedup"].notna()]
    if cells.empty:
        return tables.missing("Q2-global-batch", "no_baseline", name)
    cells["apart"] = (cells["fixed_global_batch_speedup"] / cells["speedup"] - 1).abs()
    repeated = cells[(cells["single_count"] > 1) & (cells["same_count"] > 1)]
    clear = repeated[[not _same_baseline(row) for row in repeated.itertuples()]]
    chosen = clear if len(clear) else repeated if len(repeated) else cells
    _, cell = extremes(chosen, "apart")
    views = ("speedup", "efficiency")
    columns = (*views, *(f"fixed_global_batch_{view}" for view in views))
    return tables.claim(
        "Q2-global-batch",
        {
            "cell": fmt.cell_name(cell),
            **{column: getattr(cell, column) for column in columns},
            "cells_compared": len(repeated),
            "cells_apart": len(clear),
        },
        name=name,
        holds=len(clear) > 0 and 2 * len(clear) >= len(repeated),
        fails=len(clear) == 0 and len(repeated) > 0,
        case="" if len(repeated) else "measured_once",
        row=cell,
    )


def _same_baseline(row: Any) -> bool:
    return noise.ranges_overlap(
        row.single_epoch_seconds_min,
        row.single_epoch_seconds_max,
        row.same_epoch_seconds_min,
        row.same_epoch_seconds_max,
    )


def _larger_batch(name: str, most: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That GPUs are used better with a larger batch on each."""
    small, large = extremes(most, "batch_size")
    if len(most) == 1:
        return tables.missing("Q2-batch", "one_batch", name, small=small)
    columns = ("batch_size", "speedup", "speedup_min", "speedup_max", "efficiency")
    known = pd.notna(small.within_spread) and pd.notna(large.within_spread)
    known = known and small.count > 1 and large.count > 1
    return tables.claim(
        "Q2-batch",
        columns_of(columns, smallest=small, largest=large),
        name=name,
        holds=known and large.speedup_min > small.speedup_max,
        fails=known and large.speedup_max < small.speedup_min,
        small=small,
        large=large,
    )
