"""Question 5: the effect of set_epoch on image order, shards and accuracy."""

from typing import Any

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables
from scaling.core.statistics import difference
from scaling.tables.noise import repeats_for_difference


def claims(tables: ClaimTables) -> list[Claim]:
    """Return four claims from sampler.csv and sampler_accuracy.csv, none without them."""
    drawn = tables["sampler"]
    if drawn.empty:
        return []
    distributed = drawn[drawn["sampler"] == "DistributedSampler"]
    return [
        _repeats(distributed, tables),
        _shards(distributed, tables),
        _accuracy(tables["sampler_accuracy"], tables),
        _data_parallel(drawn[drawn["sampler"] == "RandomSampler"], tables),
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


def _shards(drawn: pd.DataFrame, tables: ClaimTables) -> Claim:
    """Claim that ranks train on disjoint images, with and without set_epoch."""
    fine = ((drawn["unseen"] == 0) & (drawn["repeated"] < drawn["gpus"])).all()
    most = {f"{what}_max": int(drawn[what].max()) for what in ("unseen", "repeated", "overlap")}
    facts: dict[str, Any] = {"gpus": _counts(drawn), **most}
    return tables.claim("Q5-shards", holds=fine, fails=not fine, **facts)


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


def _data_parallel(drawn: pd.DataFrame, tables: ClaimTables) -> Claim:
    """Claim that DataParallel needs no set_epoch."""
    new = int((drawn["first_epoch"] == drawn["epoch"]).sum())
    whole = ((drawn["unseen"] == 0) & (drawn["repeated"] == 0)).all()
    fine, samples = new == len(drawn) and whole, int(drawn["samples"].iloc[0])
    facts: dict[str, Any] = {"epochs": len(drawn), "different_orders": new, "samples": samples}
    return tables.claim("Q5-data-parallel", holds=fine, fails=not fine, **facts)


def _counts(drawn: pd.DataFrame) -> str:
    return " and ".join(str(int(gpus)) for gpus in sorted(drawn["gpus"].unique()))
