"""Question 5: what set_epoch does to the order of images, to the shards, and to accuracy."""

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables
from scaling.core.statistics import paired_interval


def claims(tables: ClaimTables) -> list[Claim]:
    """Four claims from sampler.csv and sampler_accuracy.csv, none without them."""
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
    """That the order repeats unless the sampler is told the epoch."""
    told, untold = drawn[drawn["set_epoch"]], drawn[~drawn["set_epoch"].astype(bool)]
    new, old = (int((rows["first_epoch"] == rows["epoch"]).sum()) for rows in (told, untold))
    figures = {
        "epochs": int(drawn["epoch"].nunique()),
        "orders_with": len(told),
        "different_with": new,
        "orders_without": len(untold),
        "different_without": old,
        "gpus": _counts(drawn),
        "trainings": int(drawn[drawn["trained"]].groupby(["seed", "set_epoch"]).ngroups),
    }
    repeats = (untold["first_epoch"] == untold["epoch"].min()).all()
    fine = new == len(told) and repeats
    return tables.claim("Q5-repeats", figures, holds=fine, fails=not fine)


def _shards(drawn: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That ranks do not train on one another's images, told the epoch or not."""
    fine = ((drawn["unseen"] == 0) & (drawn["repeated"] < drawn["gpus"])).all()
    figures = {
        "gpus": _counts(drawn),
        "unseen_max": int(drawn["unseen"].max()),
        "repeated_max": int(drawn["repeated"].max()),
        "overlap_max": int(drawn["overlap"].max()),
    }
    return tables.claim("Q5-shards", figures, holds=fine, fails=not fine)


def _accuracy(table: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That leaving set_epoch out costs accuracy."""
    told = table["set_epoch"].map({True: "told", False: "untold"})
    pairs = table.assign(told=told).pivot(index="seed", columns="told", values="test_accuracy")
    diverged = int(table["train_loss"].isna().sum())
    if diverged:
        return tables.claim("Q5-accuracy", {}, case="diverged", diverged=diverged)
    if len(pairs) < 3:
        return tables.missing("Q5-accuracy")
    low, high = paired_interval(pairs["told"].to_list(), pairs["untold"].to_list())
    figures = {
        "seeds": len(pairs),
        "epochs": int(table["epochs"].max()),
        "test_accuracy_with": float(pairs["told"].mean()),
        "test_accuracy_without": float(pairs["untold"].mean()),
        "difference": float((pairs["untold"] - pairs["told"]).mean()),
        "low": low,
        "high": high,
    }
    return tables.claim("Q5-accuracy", figures, holds=high < 0, fails=low > 0)


def _data_parallel(drawn: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That DataParallel needs no set_epoch."""
    new = int((drawn["first_epoch"] == drawn["epoch"]).sum())
    whole = ((drawn["unseen"] == 0) & (drawn["repeated"] == 0)).all()
    fine = new == len(drawn) and whole
    figures = {
        "epochs": len(drawn),
        "different_orders": new,
        "samples": int(drawn["samples"].iloc[0]),
    }
    return tables.claim("Q5-data-parallel", figures, holds=fine, fails=not fine)


def _counts(drawn: pd.DataFrame) -> str:
    return " and ".join(str(int(gpus)) for gpus in sorted(drawn["gpus"].unique()))
