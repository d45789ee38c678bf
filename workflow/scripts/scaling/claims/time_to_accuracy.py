"""Question 4.2: images and seconds to an accuracy, also on more GPUs."""

import math
from typing import Any

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables, row_at
from scaling.claims.techniques import reference
from scaling.core import numbers as fmt
from scaling.tables.experiments.images_to_accuracy import along_small_batches, epochs_to_target
from scaling.tables.schema import by_configuration, rows_of

COLUMNS = [
    *("target_accuracy", "epoch_seconds", "seconds", "reference_seconds", "speedup"),
    *("epoch_speedup", "plain_reference_seconds", "plain_speedup"),
]
"""Columns of the cell that reaches the accuracy first."""
TWICE = 2


def claims(tables: ClaimTables) -> list[Claim]:
    """Return claims on lost speedup, on the gradient noise scale, and on full trainings."""
    return [*_knee(tables), *_run_to_their_end(tables)]


def _knee(tables: ClaimTables) -> list[Claim]:
    """Claim that a batch needs twice the fewest images just beyond the gradient noise scale.

    McCandlish et al. 2018 (equation 2.11) predict twice at the noise scale itself. The noise scale
    is a technique's at its smallest batch; epochs are the same technique's, in whole numbers, so
    part of the last one may have been unnecessary.
    """
    noise = along_small_batches(tables["noise_scale"])
    if noise.empty:
        return []
    epochs, remedy = tables["convergence_epochs"], noise["remedy"].iloc[0]
    own = epochs[epochs["chosen"].eq(True) & (epochs["remedy"] == remedy)]
    found = pd.DataFrame(
        {"accuracy": accuracy, "global_batch": size}
        | epochs_to_target(rows, "test_accuracy", accuracy)
        for size, rows in own.groupby("global_batch")
        for accuracy in tables["images_to_accuracy"]["accuracy"].unique()
    )
    reached = found[found["epochs"] < math.inf]
    known = reached[reached.groupby("accuracy")["global_batch"].transform("size") > 1]
    if known.empty:
        return []
    fewest = known.groupby("accuracy")["epochs"].transform("min")
    known = known.assign(
        more=known["epochs"] / fewest,
        least=(known["epochs"] - 1) / fewest,
        most=known["epochs"] / (fewest - 1),
    )
    middle, low, high = (noise[f"noise_scale{end}"].median() for end in ("", "_low", "_high"))
    below, above = known[known["global_batch"] <= low], known[known["global_batch"] >= high]
    foretold = (below["most"] <= TWICE).all() and (above["least"] >= TWICE).all()
    # Among the accuracies that most batches reached.
    batches = known.groupby("accuracy")["global_batch"].transform("size")
    widest = known[batches == batches.max()]
    last = widest[widest["accuracy"] == widest["accuracy"].max()]
    return [
        tables.claim(
            "Q4.2-noise-scale",
            holds=len(below) and len(above) and foretold,
            fails=(below["least"] > TWICE).any() or (above["most"] < TWICE).any(),
            remedy=remedy,
            small=noise["global_batch"].iloc[0],
            noise_scale=middle,
            noise_scale_low=low,
            noise_scale_high=high,
            accuracy=last["accuracy"].iloc[0],
            needed=list(last[["global_batch", "more"]].itertuples(index=False, name=None)),
        )
    ]


def _run_to_their_end(tables: ClaimTables) -> list[Claim]:
    """Claim that more GPUs reach an accuracy sooner, in trainings of equal epochs."""
    rows = list(rows_of(tables["trained_to_accuracy"].sort_values("gpus")))
    return [
        tables.claim(
            "Q4.2-trained",
            f"{row.recipe}/{row.strategy}, {fmt.gpus(row.gpus)}",
            holds=row.speedup_low > 1 and min(row.reached, rows[0].reached) > row.seeds / 2,
            fails=row.speedup_high < 1 or row.reached == 0,
            first=rows[0],
            row=row,
            speedup=row.speedup,
            speedup_low=row.speedup_low,
            speedup_high=row.speedup_high,
        )
        for row in rows[1:]
    ]


def _speedup_left(tables: ClaimTables) -> list[Claim]:
    """Claim that part of an epoch's speedup is lost at equal accuracy, in the fastest cell.

    One claim for each recipe and strategy with times at such global batches, each with the
    technique that held-out images choose; none without them.
    """
    plain, table = reference(tables), tables["time_to_accuracy"]
    table = table[table["best"].eq(True)]
    if plain is None or table.empty:
        return []
    timed = table[table["seconds"].notna() & table["reference_seconds"].notna()]
    larger = timed[timed["global_batch"] > plain.global_batch]
    same = larger[larger["same_split"].eq(True)]
    larger = same if len(same) else larger
    if larger.empty:
        return [tables.missing("Q4.2-time")]
    base: Any = next(table[table["global_batch"] == plain.global_batch].itertuples())
    made = []
    for recipe, strategy, rows in by_configuration(larger):
        most = rows[rows["gpus"] == rows["gpus"].max()]
        first = row_at(most, most["seconds"].idxmin())
        lost = first.epochs_to_accuracy_min > base.epochs_to_accuracy_max
        reached = math.isfinite(first.seconds)
        claim = tables.claim(
            "Q4.2-time",
            f"{recipe}/{strategy}, {fmt.gpus(first.gpus)}",
            holds=lost if reached else math.isfinite(first.reference_seconds),
            fails=reached and first.epochs_to_accuracy_max <= base.epochs_to_accuracy_min,
            case="" if reached else "never",
            first=first,
            base=base,
            **{column: getattr(first, column) for column in COLUMNS},
        )
        made.append(claim)
    return made
