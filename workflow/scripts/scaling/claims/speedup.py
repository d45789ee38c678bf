"""Question 2: strong or weak scaling, from the speedup at one batch per GPU."""

from typing import Any

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables, extremes
from scaling.core import numbers as fmt
from scaling.tables import noise
from scaling.tables.schema import by_configuration, rows_of
from scaling.tables.speedup import UNLIKE


def claims(tables: ClaimTables) -> list[Claim]:
    """Return two claims for each recipe and strategy on the most GPUs, from speedup.csv.

    None for those without any ratio because one GPU ran another program.
    """
    table = tables["speedup"]
    made = []
    for recipe, strategy, cells in by_configuration(table[table["gpus"] > 1]):
        known = cells[cells["speedup"].notna()]
        most = known[known["gpus"] == known["gpus"].max()]
        if most.empty and cells["note"].str.startswith(UNLIKE).any():
            continue
        if most.empty:
            made.append(tables.missing("Q2-faster", f"{recipe}/{strategy}"))
            continue
        about = f"{recipe}/{strategy}, {fmt.gpus(most['gpus'].iloc[0])}"
        made += [
            _faster(about, most, tables),
            _larger_batch(about, most, tables),
        ]
    return made


def _faster(about: str, most: pd.DataFrame, tables: ClaimTables) -> Claim:
    """Claim that an epoch is faster than on one GPU, for every batch size."""
    least, best = extremes(most, "speedup")
    cells, time = list(rows_of(most)), _times(most, tables)
    ratios = [
        noise.ratio([time[1, cell.batch_size]], [time[cell.gpus, cell.batch_size]])
        for cell in cells
    ]
    return tables.of_ratios("Q2-faster", about, cells, ratios, least=least, best=best)


def _larger_batch(about: str, most: pd.DataFrame, tables: ClaimTables) -> Claim:
    """Claim that efficiency is higher with a larger batch per GPU."""
    small, large = extremes(most, "batch_size")
    if len(most) == 1:
        return tables.missing("Q2-batch", about, small=small)
    cells, time = list(rows_of(most.drop(small.Index))), _times(most, tables)
    alone, spread = time[1, small.batch_size], time[small.gpus, small.batch_size]
    ratios = [
        noise.ratio([time[1, cell.batch_size], spread], [time[cell.gpus, cell.batch_size], alone])
        for cell in cells
    ]
    return tables.of_ratios("Q2-batch", about, cells, ratios, small=small, large=large)


def _times(most: pd.DataFrame, tables: ClaimTables) -> dict[tuple[int, int], Any]:
    """Return the rows of timing.csv with the recipe and strategy of `most`, by GPUs and batch."""
    own = tables["timing"].merge(most[["recipe", "strategy"]].drop_duplicates())
    return {(row.gpus, row.batch_size): row for row in rows_of(own)}
