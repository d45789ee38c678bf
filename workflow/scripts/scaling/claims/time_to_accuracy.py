"""Question 4.2: the speedup that is left when the accuracy has to be the same."""

import math
from typing import Any

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables, row_at
from scaling.tables.schema import by_configuration


def claims(tables: ClaimTables) -> list[Claim]:
    """A claim for each recipe and strategy that has times of such global batches."""
    table = tables["time_to_accuracy"]
    reference = tables["remedies"][tables["remedies"]["reference"].eq(True)]
    timed = table[table["seconds"].notna() & table["reference_seconds"].notna()]
    size = reference["global_batch"].min()
    larger = timed[timed["global_batch"] > size]
    same = larger[larger["same_split"].eq(True)]
    larger = same if len(same) else larger
    if not larger["best"].eq(True).any():
        return [tables.missing("Q4.2-time", "no_time")]
    at_reference = table[table["global_batch"] == size]
    base = at_reference[at_reference["best"].eq(True)].iloc[0]
    plain = at_reference[at_reference["remedy"] == reference.iloc[0]["remedy"]].iloc[0]
    return [
        _left(f"{recipe}/{strategy}", rows, base, plain, tables)
        for recipe, strategy, rows in by_configuration(larger)
        if rows["best"].eq(True).any()
    ]


def _left(name: str, rows: pd.DataFrame, base: Any, plain: Any, tables: ClaimTables) -> Claim:
    """That some of an epoch's speedup is lost at equal accuracy."""
    most = rows[rows["best"].eq(True)]
    most = most[most["gpus"] == most["gpus"].max()]
    fastest = row_at(most, most["seconds"].idxmin())
    epochs = "epochs_to_accuracy"
    figures: dict[str, Any] = {
        "target_accuracy": base["target_accuracy"],
        "reference_remedy": base["remedy"],
        **{f"reference_epochs{end}": _finite(base[f"{epochs}{end}"]) for end in _ENDS},
        "reference_seconds": _finite(fastest.reference_seconds),
        "plain_reference_epochs": _finite(plain[epochs]),
        "plain_reference_seconds": _finite(fastest.plain_reference_seconds),
    }
    reached = set(most.loc[most["seconds"] < math.inf, "global_batch"].astype(int))
    tried = set(rows.loc[rows["gpus"] == fastest.gpus, "global_batch"].astype(int))
    never = ", ".join(map(str, sorted(tried - reached)))
    facts = {"on": fastest.gpus, "size": int(base["global_batch"]), "never": never}
    if not reached:
        holds = math.isfinite(fastest.reference_seconds)
        return tables.claim("Q4.2-time", figures, name=name, holds=holds, case="never", **facts)
    figures |= {
        "remedy": fastest.remedy,
        "global_batch": fastest.global_batch,
        "gpus": fastest.gpus,
        **{f"{epochs}{end}": _finite(getattr(fastest, f"{epochs}{end}")) for end in _ENDS},
        "epoch_seconds": fastest.epoch_seconds,
        "seconds": fastest.seconds,
        "speedup": _finite(fastest.speedup),
        "plain_speedup": _finite(fastest.plain_speedup),
        "epoch_speedup": fastest.epoch_speedup,
    }
    return tables.claim(
        "Q4.2-time",
        figures,
        name=name,
        holds=fastest.epochs_to_accuracy_min > base["epochs_to_accuracy_max"],
        fails=fastest.epochs_to_accuracy_max <= base["epochs_to_accuracy_min"],
        case="reached",
        best=fastest,
        **facts,
    )


_ENDS = ("", "_min", "_max")


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else "infinite"
