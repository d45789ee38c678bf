"""Question 2: which scaling it is, by what the views of the speedup measure."""

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables, extremes, row_at
from scaling.core import numbers as fmt
from scaling.tables.schema import by_configuration

ALIKE = 0.05
"""Two speedups that differ by no more, by all of their ranges, are one and the same."""


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
    parts = [
        (cell, cell.count > 1 and cell.speedup_min > 1, cell.count > 1 and cell.speedup_max < 1)
        for cell in most.itertuples()
    ]
    return tables.claim(
        "Q2-faster",
        about,
        parts=parts,
        least=least,
        best=best,
    )


def _fixed_global_batch(about: str, most: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That the speedup at a fixed global batch, which trains the same, is another one."""
    cells = most.assign(global_batch_size=most["gpus"] * most["batch_size"])
    sizes = [str(size) for size in cells["global_batch_size"]]
    cells = cells[cells["fixed_global_batch_speedup"].notna()]
    if cells.empty:
        return tables.missing("Q2-global-batch", about, sizes=sizes)
    # By the extremes of T(1, N·b) over those of T(1, b): T(N, b) is in both speedups.
    both = cells["epoch_seconds_max"] / cells["epoch_seconds_min"]
    low = cells["fixed_global_batch_speedup_min"] / cells["speedup_max"] * both
    high = cells["fixed_global_batch_speedup_max"] / cells["speedup_min"] / both
    repeated = cells["count"] > 1
    apart = repeated & ((low > 1) | (high < 1))
    alike = repeated & ~apart & (low >= 1 - ALIKE) & (high <= 1 + ALIKE)
    ratio = (cells["fixed_global_batch_speedup"] / cells["speedup"] - 1).abs()
    cell = row_at(cells, ratio.where(apart | (not apart.any())).idxmax())
    return tables.claim(
        "Q2-global-batch",
        about,
        parts=zip(cells.itertuples(), apart, alike, strict=True),
        cell=cell,
        cells_compared=int(repeated.sum()),
        cells_apart=int(apart.sum()),
    )


def _larger_batch(about: str, most: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That GPUs are used better with a larger batch on each."""
    small, large = extremes(most, "batch_size")
    if len(most) == 1:
        return tables.missing("Q2-batch", about, small=small)
    parts = []
    for cell in most.drop(small.Index).itertuples():
        repeated = min(small.count, cell.count) > 1
        better = repeated and cell.speedup_min > small.speedup_max
        parts.append((cell, better, repeated and cell.speedup_max < small.speedup_min))
    return tables.claim(
        "Q2-batch",
        about,
        parts=parts,
        small=small,
        large=large,
    )
