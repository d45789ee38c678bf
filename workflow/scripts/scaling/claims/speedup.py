"""Question 2: which scaling it is, by what the views of the speedup measure."""

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables, extremes, row_at
from scaling.core import numbers as fmt
from scaling.tables.schema import by_configuration


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
    return tables.claim(
        "Q2-faster",
        about,
        holds=(repeated & (most["speedup_min"] > 1)).all(),
        fails=(repeated & (most["speedup_max"] < 1)).any(),
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
    apart = cells["fixed_global_batch_speedup_min"] > cells["speedup_max"]
    apart |= cells["fixed_global_batch_speedup_max"] < cells["speedup_min"]
    repeated = cells["count"] > 1
    apart &= repeated
    ratio = (cells["fixed_global_batch_speedup"] / cells["speedup"] - 1).abs()
    cell = row_at(cells, ratio.where(apart | (not apart.any())).idxmax())
    return tables.claim(
        "Q2-global-batch",
        about,
        holds=apart.any() and 2 * apart.sum() >= repeated.sum(),
        fails=repeated.any() and not apart.any(),
        cell=cell,
        cells_compared=int(repeated.sum()),
        cells_apart=int(apart.sum()),
    )


def _larger_batch(about: str, most: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That GPUs are used better with a larger batch on each."""
    small, large = extremes(most, "batch_size")
    if len(most) == 1:
        return tables.missing("Q2-batch", about, small=small)
    repeated = min(small.count, large.count) > 1
    return tables.claim(
        "Q2-batch",
        about,
        holds=repeated and large.speedup_min > small.speedup_max,
        fails=repeated and large.speedup_max < small.speedup_min,
        small=small,
        large=large,
    )
