"""Question 2: which scaling it is, by what the views of the speedup measure."""

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables, columns_of, extremes, row_at
from scaling.core import numbers as fmt
from scaling.tables.schema import by_configuration
from scaling.tables.timing import with_single_gpu


def claims(tables: ClaimTables) -> list[Claim]:
    """Three claims for each recipe and strategy on the most GPUs, from speedup.csv."""
    table = tables["speedup"]
    made = []
    for recipe, strategy, cells in by_configuration(table[table["gpus"] > 1]):
        known = cells[cells["speedup"].notna()]
        most = known[known["gpus"] == known["gpus"].max()]
        if most.empty:
            made.append(tables.missing("Q2-faster", f"{recipe}/{strategy}"))
            continue
        about = f"{recipe}/{strategy}, {fmt.gpus(most['gpus'].iloc[0])}"
        made += [
            _faster(about, most, tables),
            _fixed_global_batch(about, most, tables),
            _larger_batch(about, most, tables),
        ]
    return made


def _faster(about: str, most: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That an epoch is faster than on one GPU, with every batch size."""
    least, best = extremes(most, "speedup")
    repeated = most["count"] > 1
    columns = ("batch_size", "speedup", "speedup_min", "speedup_max")
    return tables.claim(
        "Q2-faster",
        columns_of(columns, least=least, best=best),
        about,
        holds=(repeated & (most["speedup_min"] > 1)).all(),
        fails=(repeated & (most["speedup_max"] < 1)).any(),
        least=least,
        best=best,
    )


def _fixed_global_batch(about: str, most: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That the speedup at a fixed global batch, which trains the same, is another one."""
    timing = tables["timing"]
    same = {f"single_{column}": f"same_{column}" for column in timing.columns}
    cells = most.assign(global_batch_size=most["gpus"] * most["batch_size"])
    sizes = [str(size) for size in cells["global_batch_size"]]
    cells = cells[cells["fixed_global_batch_speedup"].notna()]
    if cells.empty:
        return tables.missing("Q2-global-batch", about, sizes=sizes)
    cells = with_single_gpu(cells, timing, "global_batch_size").rename(columns=same)
    cells = with_single_gpu(cells, timing, "batch_size")
    repeated = cells[["single_count", "same_count"]].min(axis=1) > 1
    low, high = (cells[f"single_epoch_seconds_{end}"] for end in ("min", "max"))
    apart = (low > cells["same_epoch_seconds_max"]) | (high < cells["same_epoch_seconds_min"])
    apart &= repeated
    ratio = (cells["fixed_global_batch_speedup"] / cells["speedup"] - 1).abs()
    cell = row_at(cells, ratio.where(apart | (not apart.any())).idxmax())
    views = ("speedup", "efficiency")
    columns = (*views, *(f"fixed_global_batch_{view}" for view in views))
    return tables.claim(
        "Q2-global-batch",
        {
            "cell": fmt.cell_name(cell),
            **{column: getattr(cell, column) for column in columns},
            "cells_compared": int(repeated.sum()),
            "cells_apart": int(apart.sum()),
        },
        about,
        holds=apart.any() and 2 * apart.sum() >= repeated.sum(),
        fails=repeated.any() and not apart.any(),
        cell=cell,
    )


def _larger_batch(about: str, most: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That GPUs are used better with a larger batch on each."""
    small, large = extremes(most, "batch_size")
    if len(most) == 1:
        return tables.missing("Q2-batch", about, small=small)
    columns = ("batch_size", "speedup", "speedup_min", "speedup_max", "efficiency")
    repeated = min(small.count, large.count) > 1
    return tables.claim(
        "Q2-batch",
        columns_of(columns, smallest=small, largest=large),
        about,
        holds=repeated and large.speedup_min > small.speedup_max,
        fails=repeated and large.speedup_max < small.speedup_min,
        small=small,
        large=large,
    )
