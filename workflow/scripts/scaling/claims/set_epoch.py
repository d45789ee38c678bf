"""Question 5: the effect of set_epoch on image order and accuracy."""

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables
from scaling.core.statistics import difference
from scaling.tables.noise import repeats_for_difference


def claims(tables: ClaimTables) -> list[Claim]:
    """Return two claims from sampler.csv and sampler_accuracy.csv, none without them."""
    drawn = tables["sampler"]
    if drawn.empty:
        return []
    distributed = drawn[drawn["sampler"] == "DistributedSampler"]
    return [
        _repeats(distributed, tables),
        _accuracy(tables["sampler_accuracy"], tables),
    ]


def _repeats(drawn: pd.DataFrame, tables: ClaimTables) -> Claim:
    """Claim that the order repeats unless set_epoch is called."""
    reshuffled, fixed = drawn[drawn["set_epoch"]], drawn[~drawn["set_epoch"].astype(bool)]
    new, old = (int((rows["first_epoch"] == rows["epoch"]).sum()) for rows in (reshuffled, fixed))
    repeats = (fixed["first_epoch"] == fixed["epoch"].min()).all()
    fine = new == len(reshuffled) and repeats
    return tables.claim(
        "Q5-repeats",
        holds=fine,
        fails=not fine,
        epochs=drawn["epoch"].nunique(),
        orders_with=len(reshuffled),
        different_with=new,
        orders_without=len(fixed),
        different_without=old,
        gpus=_counts(drawn),
    )


def _accuracy(table: pd.DataFrame, tables: ClaimTables) -> Claim:
    """Claim that training without set_epoch is less accurate."""
    pairs = table.pivot(index="seed", columns="set_epoch", values="test_accuracy")
    diverged = int(table["train_loss"].isna().sum())
    if diverged:
        return tables.claim("Q5-accuracy", case="diverged", diverged=diverged)
    if len(pairs) < 3:
        return tables.missing("Q5-accuracy")
    reshuffled, fixed = pairs[True], pairs[False]
    found = difference((fixed - reshuffled).to_list())
    return tables.claim(
        "Q5-accuracy",
        holds=found.below,
        fails=found.above,
        ratios=repeats_for_difference(found),
        seeds=len(pairs),
        epochs=int(table["epochs"].max()),
        test_accuracy_with=reshuffled.mean(),
        test_accuracy_without=fixed.mean(),
        difference=found,
    )


def _counts(drawn: pd.DataFrame) -> str:
    return " and ".join(str(int(gpus)) for gpus in sorted(drawn["gpus"].unique()))
