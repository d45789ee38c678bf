"""Question 4.2: the speedup that is left when the accuracy has to be the same."""

import math
from typing import Any

import pandas as pd

from scaling.claims.claim import Claim, Evidence, judge, undecided
from scaling.claims.claim_tables import ClaimTables
from scaling.core import numbers as fmt
from scaling.tables.schema import by_configuration

QUESTION = "Q4.2"
LEFT = (
    "At each global batch the remedy that training accuracy chooses, at the reference batch as "
    "well. Of the cells on the most GPUs with a larger global batch the one that reaches the "
    "target first; cells that split the global batch as the convergence runs did go before those "
    "that do not. The claim is that some of an epoch's speedup is lost at equal accuracy. "
    "Supported: every seed needs more epochs than every seed at the reference batch, or no cell "
    "reaches the target; refuted: none needs more than any there; undecided: otherwise. Plain SGD "
    "at the reference batch is shown, not tested; the sweeps that found the rates are not counted."
)


def claims(tables: ClaimTables) -> list[Claim]:
    """A claim for each recipe and strategy that has times of such global batches."""
    table, file = tables["time_to_accuracy"], tables.file("time_to_accuracy")
    reference = tables["remedies"][tables["remedies"]["reference"].eq(True)]
    timed = table[table["seconds"].notna() & table["reference_seconds"].notna()]
    size = reference["global_batch"].min()
    larger = timed[timed["global_batch"] > size]
    same = larger[larger["same_split"].eq(True)]
    larger = same if len(same) else larger
    if not larger["best"].eq(True).any():
        lacks = (
            "What speedup is left at equal accuracy cannot be said: no timed cell has a larger "
            "global batch at which a remedy learned in every seed."
        )
        return [undecided("Q4.2-time", QUESTION, lacks, file, LEFT)]
    at_reference = table[table["global_batch"] == size]
    base = at_reference[at_reference["best"].eq(True)].iloc[0]
    plain = at_reference[at_reference["remedy"] == reference.iloc[0]["remedy"]].iloc[0]
    return [
        _left(f"{recipe}-{strategy}", f"{recipe}/{strategy}", rows, base, plain, file)
        for recipe, strategy, rows in by_configuration(larger)
        if rows["best"].eq(True).any()
    ]


def _left(line: str, name: str, rows: pd.DataFrame, base: Any, plain: Any, file: str) -> Claim:
    id, best = f"Q4.2-time-{line}", rows[rows["best"].eq(True)]
    most = best[best["gpus"] == best["gpus"].max()]
    gpus = fmt.gpus(int(most["gpus"].iloc[0]))
    target, small = base["target_accuracy"], int(base["global_batch"])
    fastest = next(most.loc[[most["seconds"].idxmin()]].itertuples())
    figures: dict[str, Any] = {
        "target_accuracy": target,
        "reference_remedy": base["remedy"],
        "reference_epochs": _finite(base["epochs_to_accuracy"]),
        "reference_epochs_min": _finite(base["epochs_to_accuracy_min"]),
        "reference_epochs_max": _finite(base["epochs_to_accuracy_max"]),
        "reference_seconds": _finite(fastest.reference_seconds),
        "plain_reference_epochs": _finite(plain["epochs_to_accuracy"]),
        "plain_reference_seconds": _finite(fastest.plain_reference_seconds),
    }
    beside = (
        f"{_seconds(fastest.reference_seconds)} with batch {small} on one GPU and {base['remedy']} "
        f"({_epochs(base['epochs_to_accuracy'])}), {_seconds(fastest.plain_reference_seconds)} "
        f"there with plain SGD ({_epochs(plain['epochs_to_accuracy'])})"
    )
    reached = set(most.loc[most["seconds"] < math.inf, "global_batch"].astype(int))
    at_most = rows.loc[rows["gpus"] == most["gpus"].iloc[0], "global_batch"].astype(int)
    never = ", ".join(map(str, sorted(set(at_most) - reached)))
    goal = f"{name}: the time to {fmt.percent(target)} test accuracy"
    if not reached:
        sentence = (
            f"{goal} is infinite on {gpus}: the remedy that training accuracy chooses does not "
            f"reach it at a global batch of {never}, so nothing is left of the speedup; it is "
            f"{beside}."
        )
        verdict = judge(math.isfinite(fastest.reference_seconds), False)
        return Claim(id, QUESTION, sentence, verdict, [Evidence(file, figures, LEFT)])
    split = "" if fastest.same_split else " (split otherwise where its convergence was measured)"
    figures |= {
        "remedy": fastest.remedy,
        "global_batch": fastest.global_batch,
        "gpus": fastest.gpus,
        "epochs_to_accuracy": fastest.epochs_to_accuracy,
        "epochs_to_accuracy_min": _finite(fastest.epochs_to_accuracy_min),
        "epochs_to_accuracy_max": _finite(fastest.epochs_to_accuracy_max),
        "epoch_seconds": fastest.epoch_seconds,
        "seconds": fastest.seconds,
        "speedup": _finite(fastest.speedup),
        "plain_speedup": _finite(fastest.plain_speedup),
        "epoch_speedup": fastest.epoch_speedup,
    }
    sentence = (
        f"{goal} is {fmt.seconds(fastest.seconds)} on {gpus} with a global batch of "
        f"{int(fastest.global_batch)}{split} and {fastest.remedy} "
        f"({_epochs(fastest.epochs_to_accuracy)} of {fmt.seconds(fastest.epoch_seconds)}), "
        f"{beside}: {_left_of_it(fastest, base)} ({fmt.times(fastest.plain_speedup)} against plain "
        f"SGD). Over the seeds it takes {_range(fastest._asdict())} epochs, {_range(base)} with "
        f"batch {small}."
    )
    if never:
        sentence += f" It is never reached, an infinite time, at {never}."
    more = fastest.epochs_to_accuracy_min > base["epochs_to_accuracy_max"]
    none_more = fastest.epochs_to_accuracy_max <= base["epochs_to_accuracy_min"]
    verdict = judge(bool(more), bool(none_more))
    return Claim(id, QUESTION, sentence, verdict, [Evidence(file, figures, LEFT)])


def _left_of_it(fastest: Any, base: Any) -> str:
    """What becomes of an epoch's speedup, by the medians of the epochs."""
    per_epoch, left = fmt.times(fastest.epoch_speedup), fmt.times(fastest.speedup)
    if fastest.epochs_to_accuracy == base["epochs_to_accuracy"]:
        return (
            f"the median seed needs as many epochs, so nothing of the speedup of {per_epoch} per "
            "epoch is lost at equal accuracy"
        )
    if fastest.epochs_to_accuracy < base["epochs_to_accuracy"]:
        return (
            f"the median seed needs fewer epochs, so a speedup of {per_epoch} per epoch is {left} "
            "at equal accuracy"
        )
    return f"of a speedup of {per_epoch} per epoch {left} is left at equal accuracy"


def _range(row: Any) -> str:
    """The fewest and the most epochs of a seed: `4–5`, `4 to never`."""
    low, high = row["epochs_to_accuracy_min"], row["epochs_to_accuracy_max"]
    if not math.isfinite(high):
        return f"{low:g} to infinitely many" if math.isfinite(low) else "infinitely many"
    return f"{low:g}" if low == high else f"{low:g}–{high:g}"


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else "infinite"


def _seconds(value: float) -> str:
    return fmt.seconds(value) if math.isfinite(value) else "an infinite time"


def _epochs(count: float) -> str:
    return fmt.plural(int(count), "epoch") if math.isfinite(count) else "never reached"
