"""Question 4.2: the speedup that is left when the accuracy has to be the same."""

import math
from typing import Any

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables, row_at
from scaling.claims.techniques import reference_runs
from scaling.core import numbers as fmt
from scaling.tables.schema import by_configuration

EPOCHS = "epochs_to_accuracy"
ENDS = ("", "_min", "_max")


def claims(tables: ClaimTables) -> list[Claim]:
    """A claim for each recipe and strategy that has times of such global batches."""
    reference = reference_runs(tables)
    if reference.empty:
        return []
    table, size = tables["time_to_accuracy"], reference["global_batch"].min()
    timed = table[table["seconds"].notna() & table["reference_seconds"].notna()]
    larger = timed[(timed["global_batch"] > size) & timed["best"].eq(True)]
    same = larger[larger["same_split"].eq(True)]
    larger = same if len(same) else larger
    if larger.empty:
        return [tables.missing("Q4.2-time")]
    at_reference = table[(table["global_batch"] == size) & table["best"].eq(True)]
    return [
        _left(f"{recipe}/{strategy}", rows, at_reference.iloc[0], tables)
        for recipe, strategy, rows in by_configuration(larger)
    ]


def _left(about: str, rows: pd.DataFrame, base: Any, tables: ClaimTables) -> Claim:
    """That some of an epoch's speedup is lost at equal accuracy, in the cell that is there first.

    At each global batch by the technique that training accuracy chooses.
    """
    most = rows[rows["gpus"] == rows["gpus"].max()]
    fastest = row_at(most, most["seconds"].idxmin())
    figures: dict[str, Any] = {
        "target_accuracy": base["target_accuracy"],
        "reference_batch": int(base["global_batch"]),
        "reference_remedy": base["remedy"],
        **{f"reference_epochs{end}": _finite(base[f"{EPOCHS}{end}"]) for end in ENDS},
        "reference_seconds": _finite(fastest.reference_seconds),
        "plain_reference_seconds": _finite(fastest.plain_reference_seconds),
    }
    about = f"{about}, {fmt.gpus(fastest.gpus)}"
    if math.isinf(fastest.seconds):
        holds = math.isfinite(fastest.reference_seconds)
        return tables.claim("Q4.2-time", figures, about, holds=holds, case="never")
    figures |= {
        "remedy": fastest.remedy,
        "global_batch": int(fastest.global_batch),
        "gpus": fastest.gpus,
        **{f"{EPOCHS}{end}": _finite(getattr(fastest, f"{EPOCHS}{end}")) for end in ENDS},
        "epoch_seconds": fastest.epoch_seconds,
        "seconds": fastest.seconds,
        "speedup": _finite(fastest.speedup),
        "plain_speedup": _finite(fastest.plain_speedup),
        "epoch_speedup": fastest.epoch_speedup,
    }
    return tables.claim(
        "Q4.2-time",
        figures,
        about,
        holds=fastest.epochs_to_accuracy_min > base[f"{EPOCHS}_max"],
        fails=fastest.epochs_to_accuracy_max <= base[f"{EPOCHS}_min"],
    )


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else "infinite"
