"""Tables on accuracy and on what ranks share: questions 4 to 7."""

from functools import partial
from operator import attrgetter
from typing import Any

import pandas as pd

from scaling.core.numbers import percent, significant, times, whole_span, words
from scaling.report.quantities import count, define, share, span, view, whole
from scaling.report.table import Column
from scaling.report.views.scaling import CELL
from scaling.tables.schema import StudyTables

BY_GLOBAL_BATCH: Any = {"across": "global_batch", "heading": whole}

define(
    technique=Column("technique", words, attrgetter("options"), "remedy"),
    technique_accuracy=Column(
        "",
        percent,
        lambda row: f"rate {significant(row.learning_rate)}",
        "test_accuracy",
        flags={
            "all diverged": lambda row: row.diverged_seeds == row.seeds,
            "some diverged": lambda row: 0 < row.diverged_seeds < row.seeds,
            "at an end of its rates": attrgetter("at_edge"),
        },
    ),
    trained_on=Column("GPUs × b", text="{0.gpus} × {0.batch_size}".format, name="gpus"),
    trained_epochs=Column("epochs", whole, name="epochs"),
    reached=Column("reached", text="{0.reached} of {0.seeds}".format),
    trained_accuracy=Column(
        "test accuracy", percent, span("test_accuracy", percent), "test_accuracy"
    ),
    training_seconds=Column("seconds", significant, span("training_seconds")),
    trained_run_seconds=Column("with start-up", significant, span("run_seconds"), "run_seconds"),
    training_joules=Column("joules", significant, span("joules"), "joules"),
    training_speedup=Column("speedup", times, span("speedup", ends=("low", "high")), "speedup"),
    set_epoch=Column("set_epoch", lambda called: "yes" if called else "no"),
    different=Column("different orders of a rank"),
    overlap=Column("images two ranks share"),
    unseen=Column("images left out"),
    repeated=Column("draws repeated"),
    way=Column("parallel mode", words),
    phase=Column("when", words),
    kind=Column("kind", words),
    messages=Column("messages", whole),
    bytes=Column("bytes", count),
    share_of_gradients=Column("of all gradients", share),
    buffers=Column("buffers", words),
    hashes=Column("buffers on the ranks"),
    variance_drift_mean=Column(
        "running variances apart", percent, lambda row: percent(row.variance_drift_max)
    ),
    lowest=Column("test accuracy by rank", percent, lambda row: f"to {percent(row.highest)}"),
)


view(
    "Q4",
    "Accuracy after equal epochs at the lab's rate",
    CELL,
    "epoch train_loss train_accuracy test_accuracy",
    accuracy=lambda study, cells: cells.dropna(subset="test_accuracy"),
)
view(
    "Q4",
    "Techniques by global batch: test accuracy at equal epochs",
    "technique",
    "technique_accuracy",
    techniques=lambda study, cells: study.remedies,
    **BY_GLOBAL_BATCH,
)
view(
    "Q4",
    "Trainings to an accuracy, run to their end",
    "trained_on",
    "trained_epochs reached trained_accuracy training_seconds trained_run_seconds training_joules"
    " training_speedup",
    trained_to_accuracy=lambda study, cells: study.trained_to_accuracy,
)


@view(
    "Q5",
    "Orders of images, hashed",
    "sampler gpus set_epoch",
    "epoch different overlap unseen repeated",
)
def sampler(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Summarize what each sampler drew: extremes over ranks, seeds and epochs."""
    keys = ["sampler", "gpus", "set_epoch"]
    of_ranks = study.sampler.groupby([*keys, "trained", "seed", "rank"])
    drawn = study.sampler.assign(different=of_ranks["first_epoch"].transform("nunique"))
    spans = drawn.groupby(keys, sort=False)[["different", "overlap", "unseen", "repeated"]]
    epochs = drawn.groupby(keys, sort=False)["epoch"].nunique()
    return spans.agg(partial(whole_span, between="–")).assign(epoch=epochs).reset_index()


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
    found = groups.agg(messages=("bytes", "size"), bytes=("bytes", "sum")).reset_index()
    return found.assign(share_of_gradients=found["bytes"] / known["gradient_bytes"].max())


@view(
    "Q7",
    "Ranks compared after the last epoch",
    "buffers",
    "parameters hashes variance_drift_mean lowest",
)
def buffers(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each buffer mode: whether ranks end equal, and their differences."""
    groups = study.buffers.groupby("buffers", sort=False)
    return groups.agg(
        parameters=("parameters_sha256", _alike),
        hashes=("buffers_sha256", _alike),
        variance_drift_mean=("variance_drift_mean", "first"),
        variance_drift_max=("variance_drift_max", "first"),
        lowest=("test_accuracy", "min"),
        highest=("test_accuracy", "max"),
    ).reset_index()


def _alike(hashes: pd.Series) -> str:
    return "identical" if hashes.nunique() == 1 else f"{hashes.nunique()} different"
