"""Tables of the page on ranks: their samplers, messages and replicas (Q5 to Q7)."""

from functools import partial

import pandas as pd

from scaling.core.numbers import percent, whole_span, words
from scaling.report.quantities import count, define, view
from scaling.report.table import Column
from scaling.tables.schema import StudyTables

define(
    set_epoch=Column("set_epoch", lambda called: "yes" if called else "no"),
    different=Column("different orders of a rank"),
    overlap=Column("images drawn by two ranks"),
    unseen=Column("images left out"),
    way=Column("parallel mode", words),
    phase=Column("when", words),
    kind=Column("kind", words),
    bytes=Column("bytes", count),
    share_of_gradients=Column("of all gradients", lambda share: f"{100 * share:.3g} %"),
    buffers=Column("buffers", words),
    equal_parameters=Column("parameters equal"),
    variance_drift_mean=Column("running variances differ by", percent),
    variance_drift_max=Column("at most", percent),
    rank_accuracy=Column("test accuracy of ranks"),
)


@view("Q5", "Orders of images, hashed", "sampler gpus set_epoch", "epoch different overlap unseen")
def sampler(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return a row per sampler, GPUs and set_epoch: ranges over ranks, seeds and epochs."""
    keys = ["sampler", "gpus", "set_epoch"]
    of_ranks = study.sampler.groupby([*keys, "trained", "seed", "rank"])
    drawn = study.sampler.assign(different=of_ranks["first_epoch"].transform("nunique"))
    spans = drawn.groupby(keys, sort=False)[["different", "overlap", "unseen"]]
    epochs = drawn.groupby(keys, sort=False)["epoch"].nunique()
    return spans.agg(partial(whole_span, between="–")).assign(epoch=epochs).reset_index()


def _messages(known: pd.DataFrame) -> pd.DataFrame:
    """Return number and bytes of messages in the last recorded step, by mode and content."""
    last = known[known["step"] == known.groupby("way")["step"].transform("max")]
    groups = last.groupby(["way", "phase", "kind", "content"], sort=False)
    found = groups.agg(messages=("bytes", "size"), bytes=("bytes", "sum")).reset_index()
    return found.assign(share_of_gradients=found["bytes"] / known["gradient_bytes"].max())


MESSAGES = "messages bytes share_of_gradients"
view(
    "Q6",
    "Messages of a DDP step",
    "content phase kind",
    MESSAGES,
    messages=lambda study, _: _messages(study.collectives[study.collectives["way"] == "ddp"]),
)
view(
    "Q6",
    "Messages of a step, by parallel mode",
    "way phase kind content",
    MESSAGES,
    all_messages=lambda study, _: _messages(study.collectives),
)


@view(
    "Q7",
    "Ranks after the last epoch",
    "buffers",
    "equal_parameters variance_drift_mean variance_drift_max rank_accuracy",
)
def replicas(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return by mode of buffers whether parameters of ranks are equal, and drifts of variances."""
    modes = study.buffers.groupby("buffers", sort=False)
    found = modes[["variance_drift_mean", "variance_drift_max"]].max()
    equal = modes["parameters_sha256"].nunique().eq(1).map({True: "bit for bit", False: "no"})
    accuracies = modes["test_accuracy"].agg(lambda own: ", ".join(map(percent, own)))
    return found.assign(equal_parameters=equal, rank_accuracy=accuracies).reset_index()
