"""Tables on what ranks share: the sampler, messages and buffers of questions 5 to 7."""

import pandas as pd

from scaling.core.numbers import percent, whole_span, words
from scaling.report.quantities import count, define, share, view, whole
from scaling.report.table import Column
from scaling.tables.schema import StudyTables

IDENTICAL = "identical"

define(
    set_epoch=Column("set_epoch", lambda called: "yes" if called else "no"),
    epochs=Column("epochs", whole),
    different=Column("different orders of a rank"),
    overlap=Column("images two ranks share"),
    unseen=Column("images left out"),
    repeated=Column("draws repeated"),
    way=Column("parallel mode", words),
    phase=Column("when", words),
    kind=Column("kind", words),
    messages=Column("messages", whole),
    bytes=Column("bytes", count),
    share_of_gradients=Column(
        "of all gradients", share, value=lambda row: row.bytes / row.gradient_bytes
    ),
    buffers=Column("buffers", words),
    hashes=Column("buffers on the ranks"),
    variance_drift_mean=Column(
        "running variances apart", percent, lambda row: percent(row.variance_drift_max)
    ),
    lowest=Column(
        "test accuracy by rank", text=lambda row: f"{percent(row.lowest)} to {percent(row.highest)}"
    ),
)


@view(
    "Q5",
    "Orders of images, hashed",
    "sampler gpus set_epoch",
    "epochs different overlap unseen repeated",
)
def sampler(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Summarize what each sampler drew: extremes over ranks, seeds and epochs."""
    rows = []
    for key, same in study.sampler.groupby(["sampler", "gpus", "set_epoch"], sort=False):
        chains = same.groupby(["trained", "seed", "rank"])["first_epoch"].nunique()
        row = dict(zip(("sampler", "gpus", "set_epoch"), key, strict=True))
        row |= {"epochs": same["epoch"].nunique(), "different": whole_span(chains, "–")}
        spans = ("overlap", "unseen", "repeated")
        rows.append(row | {name: whole_span(same[name], "–") for name in spans})
    return pd.DataFrame(rows)


@view(
    "Q6",
    "Messages of a training step",
    "way phase kind content",
    "messages bytes share_of_gradients",
)
def messages(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the messages of the last recorded step, by mode and content."""
    known = study.collectives
    last = known[known["step"] == known.groupby("way")["step"].transform("max")]
    groups = last.groupby(["way", "phase", "kind", "content"], sort=False)
    return groups.agg(
        messages=("bytes", "size"),
        bytes=("bytes", "sum"),
        gradient_bytes=("gradient_bytes", "first"),
    ).reset_index()


@view(
    "Q7",
    "Ranks compared after the last epoch",
    "buffers",
    "parameters hashes variance_drift_mean lowest",
)
def buffers(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each buffer mode: whether ranks end equal, and their differences."""
    groups = study.buffers.groupby("buffers", sort=False)
    found = groups.first()
    return found.assign(
        parameters=groups["parameters_sha256"].agg(_alike),
        hashes=groups["buffers_sha256"].agg(_alike),
        lowest=groups["test_accuracy"].min(),
        highest=groups["test_accuracy"].max(),
    ).reset_index()


def _alike(hashes: pd.Series) -> str:
    return IDENTICAL if hashes.nunique() == 1 else f"{hashes.nunique()} different"
