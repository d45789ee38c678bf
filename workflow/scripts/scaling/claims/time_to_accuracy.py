"""Question 4.2: the speedup that is left when the accuracy has to be the same."""

import math
from typing import Any

import pandas as pd

from scaling import report_format as fmt
from scaling.claims.claim import Claim, Evidence, judge, undecided
from scaling.claims.claim_tables import ClaimTables
from scaling.result_tables import by_configuration

QUESTION = "Q4.2"
LEFT = (
    "Of the cells on the most GPUs with a larger global batch, each with its best remedy, the one "
    "that reaches the target first; cells that split the global batch as the convergence runs did "
    "go before those that do not. Supported: it needs more epochs than the reference in every "
    "seed, or no cell reaches the target; refuted: fewer in every seed; undecided: otherwise."
)


def claims(tables: ClaimTables) -> list[Claim]:
    """A claim for each recipe and strategy that has times of such global batches."""
    table, file = tables["time_to_accuracy"], tables.file("time_to_accuracy")
    reference = tables["remedies"][tables["remedies"]["reference"].eq(True)]
    timed = table[table["seconds"].notna() & table["reference_seconds"].notna()]
    size = reference["global_batch"].min()
    larger = timed[timed["global_batch"] > size]
    if larger.empty:
        lacks = (
            "What speedup is left at equal accuracy cannot be said: no timed cell has a larger "
            "global batch whose convergence was measured."
        )
        return [undecided("Q4.2-time", QUESTION, lacks, file, LEFT)]
    same = larger[larger["same_split"].eq(True)]
    larger = same if len(same) else larger
    base = table[
        (table["remedy"] == reference.iloc[0]["remedy"])
        & (table["global_batch"] == reference.iloc[0]["global_batch"])
    ]
    return [
        _left(f"{recipe}-{strategy}", f"{recipe}/{strategy}", rows, base.iloc[0], file)
        for recipe, strategy, rows in by_configuration(larger)
    ]


def _left(line: str, name: str, rows: pd.DataFrame, base: Any, file: str) -> Claim:
    most = rows[rows["gpus"] == rows["gpus"].max()]
    gpus = fmt.gpus(int(most["gpus"].iloc[0]))
    target, small = base["target_accuracy"], int(base["global_batch"])
    fastest = next(rows.loc[[most["seconds"].idxmin()]].itertuples())
    reached = math.isfinite(fastest.seconds)
    figures: dict[str, Any] = {
        "target_accuracy": target,
        "reference_epochs": _finite(base["epochs_to_accuracy"]),
        "reference_seconds": _finite(fastest.reference_seconds),
    }
    never = [
        str(int(batch))
        for batch, each in most.groupby("global_batch")
        if not (each["seconds"] < math.inf).any()
    ]
    goal = f"{name}: the time to {fmt.percent(target)} test accuracy"
    if not reached:
        sentence = (
            f"{goal} is infinite on {gpus}: no remedy reaches it at a global batch of "
            f"{', '.join(never)}, so nothing is left of the speedup; batch {small} on one GPU "
            f"takes {_seconds(fastest.reference_seconds)}."
        )
        verdict = judge(math.isfinite(fastest.reference_seconds), False)
        return Claim(f"Q4.2-time-{line}", QUESTION, sentence, verdict, [_evidence(file, figures)])
    split = "" if fastest.same_split else " (split otherwise where its convergence was measured)"
    figures |= {
        "remedy": fastest.remedy,
        "global_batch": fastest.global_batch,
        "gpus": fastest.gpus,
        "epochs_to_accuracy": fastest.epochs_to_accuracy,
        "epoch_seconds": fastest.epoch_seconds,
        "seconds": fastest.seconds,
        "speedup": fastest.speedup,
        "epoch_speedup": fastest.epoch_speedup,
    }
    sentence = (
        f"{goal} is {fmt.seconds(fastest.seconds)} on {gpus} with a global batch of "
        f"{int(fastest.global_batch)}{split} and {fastest.remedy} "
        f"({fastest.epochs_to_accuracy:g} epochs of {fmt.seconds(fastest.epoch_seconds)}), "
        f"{_seconds(fastest.reference_seconds)} with batch {small} on one GPU "
        f"({base['epochs_to_accuracy']:g} epochs): of a speedup of "
        f"{fmt.times(fastest.epoch_speedup)} per epoch {fmt.times(fastest.speedup)} is left at "
        "equal accuracy."
    )
    if never:
        sentence += f" It is never reached, an infinite time, at {', '.join(never)}."
    more = fastest.epochs_to_accuracy_min > base["epochs_to_accuracy_max"]
    fewer = fastest.epochs_to_accuracy_max < base["epochs_to_accuracy_min"]
    verdict = judge(bool(more), bool(fewer))
    return Claim(f"Q4.2-time-{line}", QUESTION, sentence, verdict, [_evidence(file, figures)])


def _evidence(file: str, figures: dict[str, Any]) -> Evidence:
    return Evidence(file, figures, LEFT)


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else "infinite"


def _seconds(value: float) -> str:
    return fmt.seconds(value) if math.isfinite(value) else "an infinite time"
