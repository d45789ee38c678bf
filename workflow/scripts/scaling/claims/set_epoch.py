"""Question 5: what set_epoch does to the order of images, to the shards, and to accuracy."""

from typing import Any

import pandas as pd

from scaling.claims.claim import Claim, Evidence, judge, undecided
from scaling.claims.claim_tables import ClaimTables
from scaling.core import numbers as fmt
from scaling.core.statistics import paired_interval

QUESTION = "Q5"
REPEATS = (
    "Orders of each rank hashed, over 2 epochs or more. Supported: without set_epoch every rank's "
    "order is that of the first epoch in all, with it no rank has one twice; refuted: one rank "
    "does otherwise."
)
SHARDS = (
    "Shards of each epoch compared, with and without set_epoch. Supported: no image is left out, "
    "and fewer than N draws are repeats, as it takes to give N ranks equal shares; refuted: an "
    "image is left out, or more are drawn twice, in one epoch."
)
ACCURACY = (
    "Test accuracy without set_epoch minus that with it, paired by seed, after equally many "
    "epochs: 95 % interval by Student's t. Supported: all of it is below 0; refuted: all of it is "
    "above; undecided: it contains 0, or there are fewer than 3 pairs."
)
ALONE = (
    "Orders of the one process's RandomSampler hashed. Supported: each epoch's is new, and each "
    "draws every image once; refuted: one comes again, or is not whole."
)


def claims(tables: ClaimTables) -> list[Claim]:
    """Four claims from sampler.csv and sampler_accuracy.csv."""
    drawn = tables["sampler"]
    file = tables.file("sampler")
    distributed = drawn[drawn["sampler"] == "DistributedSampler"]
    return [
        _repeats(distributed, file),
        _shards(distributed, file),
        _accuracy(tables["sampler_accuracy"], tables.file("sampler_accuracy")),
        _data_parallel(drawn[drawn["sampler"] == "RandomSampler"], file),
    ]


def _repeats(drawn: pd.DataFrame, file: str) -> Claim:
    """That the order repeats unless the sampler is told the epoch."""
    told, untold = drawn[drawn["set_epoch"]], drawn[~drawn["set_epoch"].astype(bool)]
    epochs = int(drawn["epoch"].nunique())
    if told.empty or untold.empty or epochs < 2:
        lacks = (
            "Whether the order of images repeats without set_epoch cannot be said: the study has "
            "no orders of 2 epochs on several GPUs, drawn both ways."
        )
        return undecided("Q5-repeats", QUESTION, lacks, file, REPEATS)
    once = (told["first_epoch"] == told["epoch"]).all()
    again = (untold["first_epoch"] == untold["epoch"].min()).all()
    figures: dict[str, Any] = {
        "epochs": epochs,
        "orders_with": len(told),
        "different_with": int((told["first_epoch"] == told["epoch"]).sum()),
        "orders_without": len(untold),
        "different_without": int((untold["first_epoch"] == untold["epoch"]).sum()),
        "gpus": _counts(drawn),
        "trainings": int(drawn[drawn["trained"]].groupby(["seed", "set_epoch"]).ngroups),
    }
    where = (
        f"on {figures['gpus']} GPUs, by the samplers of "
        f"{fmt.plural(figures['trainings'], 'training')} and by others like them"
    )
    if once and again:
        sentence = (
            f"Without set_epoch each rank sees its images in one and the same order in all "
            f"{epochs} epochs; with it, in another order in each ({where}; "
            f"{fmt.plural(len(told) + len(untold), 'order')} hashed)."
        )
    else:
        sentence = (
            f"The order of images does not follow set_epoch: of {len(told)} orders with it "
            f"{figures['different_with']} are new to their rank, of {len(untold)} without it "
            f"{figures['different_without']} ({epochs} epochs, {where})."
        )
    verdict = judge(once and again, not (once and again))
    return Claim("Q5-repeats", QUESTION, sentence, verdict, [Evidence(file, figures, REPEATS)])


def _shards(drawn: pd.DataFrame, file: str) -> Claim:
    """That ranks do not train on one another's images, told the epoch or not."""
    if drawn.empty:
        lacks = "Whether shards overlap cannot be said: the study has no orders on several GPUs."
        return undecided("Q5-shards", QUESTION, lacks, file, SHARDS)
    fine = ((drawn["unseen"] == 0) & (drawn["repeated"] < drawn["gpus"])).all()
    figures: dict[str, Any] = {
        "gpus": _counts(drawn),
        "unseen_max": int(drawn["unseen"].max()),
        "repeated_max": int(drawn["repeated"].max()),
        "overlap_max": int(drawn["overlap"].max()),
    }
    if not fine:
        sentence = (
            f"Shards are not disjoint on {figures['gpus']} GPUs: in one epoch "
            f"{figures['repeated_max']} draws repeat an image that was drawn before, two ranks "
            f"share up to {figures['overlap_max']} images, and up to {figures['unseen_max']} "
            "images are left out."
        )
    elif figures["repeated_max"]:
        sentence = (
            f"With and without set_epoch the ranks' shards make up the training set on "
            f"{figures['gpus']} GPUs; only where N does not divide it are up to "
            f"{figures['repeated_max']} images drawn twice, so that all shares are equal."
        )
    else:
        sentence = (
            f"With and without set_epoch no image is in two ranks' shards, and none is left out "
            f"(on {figures['gpus']} GPUs, which divide the training set): what repeats is the "
            "order, not the division."
        )
    evidence = [Evidence(file, figures, SHARDS)]
    return Claim("Q5-shards", QUESTION, sentence, judge(fine, not fine), evidence)


def _accuracy(table: pd.DataFrame, file: str) -> Claim:
    """That leaving set_epoch out costs accuracy."""
    pairs = table.assign(told=table["set_epoch"].map({True: "told", False: "untold"})).pivot(
        index="seed", columns="told", values="test_accuracy"
    )
    diverged = int(table["train_loss"].isna().sum())
    if (
        diverged
        or len(pairs) < 3
        or set(pairs) != {"told", "untold"}
        or pairs.isna().any(axis=None)
    ):
        lacks = "What set_epoch does to accuracy cannot be said: " + (
            f"{fmt.plural(diverged, 'training')} diverged."
            if diverged
            else "there are no 3 seeds trained with it and without."
        )
        return undecided("Q5-accuracy", QUESTION, lacks, file, ACCURACY)
    without, with_it = pairs["untold"].to_list(), pairs["told"].to_list()
    low, high = paired_interval(with_it, without)
    difference = float((pairs["untold"] - pairs["told"]).mean())
    figures: dict[str, Any] = {
        "seeds": len(pairs),
        "epochs": int(table["epochs"].max()),
        "test_accuracy_with": float(pairs["told"].mean()),
        "test_accuracy_without": float(pairs["untold"].mean()),
        "difference": difference,
        "low": low,
        "high": high,
    }
    measured = (
        f"{100 * figures['test_accuracy_without']:.2f} % without, "
        f"{100 * figures['test_accuracy_with']:.2f} % with it after "
        f"{fmt.plural(figures['epochs'], 'epoch')}, a difference of {fmt.points(100 * difference)} "
        f"points (95 % interval {fmt.points(100 * low)} to {fmt.points(100 * high)}, "
        f"{len(pairs)} seeds)"
    )
    if high < 0:
        sentence = f"Training without set_epoch costs test accuracy: {measured}."
    elif low > 0:
        sentence = f"Training without set_epoch does not cost test accuracy, it gains: {measured}."
    else:
        sentence = (
            "That training without set_epoch costs test accuracy cannot be told from the spread "
            f"of the seeds: {measured}. A loss of up to {100 * max(0.0, -low):.2f} points is not "
            "excluded."
        )
    evidence = [Evidence(file, figures, ACCURACY)]
    return Claim("Q5-accuracy", QUESTION, sentence, judge(high < 0, low > 0), evidence)


def _data_parallel(drawn: pd.DataFrame, file: str) -> Claim:
    """That DataParallel needs no set_epoch."""
    if drawn["epoch"].nunique() < 2:
        lacks = (
            "Whether DataParallel needs set_epoch cannot be said: the study has no orders of one "
            "process over 2 epochs."
        )
        return undecided("Q5-data-parallel", QUESTION, lacks, file, ALONE)
    new = int((drawn["first_epoch"] == drawn["epoch"]).sum())
    whole = bool(((drawn["unseen"] == 0) & (drawn["repeated"] == 0)).all())
    fine = new == len(drawn) and whole
    figures: dict[str, Any] = {"epochs": len(drawn), "different_orders": new}
    figures["samples"] = int(drawn["samples"].iloc[0])
    if fine:
        sentence = (
            "DataParallel needs no set_epoch: it is one process, there are no shards to keep "
            f"apart, and its RandomSampler, told nothing, drew a new order of all "
            f"{figures['samples']:,} images in each of {new} epochs."
        )
    else:
        sentence = (
            f"DataParallel's RandomSampler did not draw each image once in a new order each epoch: "
            f"{new} of {len(drawn)} orders are new."
        )
    return Claim(
        "Q5-data-parallel",
        QUESTION,
        sentence,
        judge(fine, not fine),
        [Evidence(file, figures, ALONE)],
    )


def _counts(drawn: pd.DataFrame) -> str:
    return " and ".join(str(int(gpus)) for gpus in sorted(drawn["gpus"].unique()))
