"""Question 4.2: the speedup that is left when the accuracy has to be the same."""

import math
from typing import Any

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables, row_at
from scaling.claims.techniques import reference
from scaling.core import numbers as fmt
from scaling.tables.schema import by_configuration

COLUMNS = [
    *("target_accuracy", "epoch_seconds", "seconds", "reference_seconds", "speedup"),
    *("epoch_speedup", "plain_reference_seconds", "plain_speedup"),
]
"""Of the cell that reaches the accuracy first."""


def claims(tables: ClaimTables) -> list[Claim]:
    """A claim for each recipe and strategy that has times of such global batches."""
    plain, table = reference(tables), tables["time_to_accuracy"]
    if plain is None:
        return []
    table = table[table["best"].eq(True)]
    timed = table[table["seconds"].notna() & table["reference_seconds"].notna()]
    larger = timed[timed["global_batch"] > plain.global_batch]
    same = larger[larger["same_split"].eq(True)]
    larger = same if len(same) else larger
    if larger.empty:
        return [tables.missing("Q4.2-time")]
    base = next(table[table["global_batch"] == plain.global_batch].itertuples())
    return [
        _left(f"{recipe}/{strategy}", rows, base, tables)
        for recipe, strategy, rows in by_configuration(larger)
    ]


def _left(about: str, rows: pd.DataFrame, base: Any, tables: ClaimTables) -> Claim:
    """That some of an epoch's speedup is lost at equal accuracy, in the cell that is there first.

    At each global batch by the technique that training accuracy chooses.
    """
    most = rows[rows["gpus"] == rows["gpus"].max()]
    first = row_at(most, most["seconds"].idxmin())
    lost = first.epochs_to_accuracy_min > base.epochs_to_accuracy_max
    reached = math.isfinite(first.seconds)
    return tables.claim(
        "Q4.2-time",
        f"{about}, {fmt.gpus(first.gpus)}",
        holds=lost if reached else math.isfinite(first.reference_seconds),
        fails=reached and first.epochs_to_accuracy_max <= base.epochs_to_accuracy_min,
        case="" if reached else "never",
        first=first,
        base=base,
        **{column: getattr(first, column) for column in COLUMNS},
    )
