"""Tables on accuracy and on what ranks share: questions 4 to 7."""

from functools import partial
from operator import attrgetter, itemgetter

import pandas as pd

from scaling.core.numbers import percent, significant, times, whole_span, words
from scaling.report.quantities import count, define, share, span, view, whole
from scaling.report.table import Column
from scaling.report.views.scaling import CELL
from scaling.tables.schema import StudyTables

define(
    technique=Column("technique", words, attrgetter("options"), "remedy"),
    technique_accuracy=Column(
        "",
        percent,
        lambda row: f"rate {significant(row.learning_rate)}",
        "test_accuracy",
        flags={
            "diverged": attrgetter("diverged_seeds"),
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
    way=Column("parallel mode", words),
    phase=Column("when", words),
    kind=Column("kind", words),
    messages=Column("messages", whole),
    bytes=Column("bytes", count),
    share_of_gradients=Column("of all gradients", share),
    buffers=Column("buffers", words),
    rank=Column("rank", whole),
    parameters_hash=Column("parameters", itemgetter(slice(8)), name="parameters_sha256"),
    buffers_hash=Column("buffers", itemgetter(slice(8)), name="buffers_sha256"),
    variance_drift_mean=Column("running variances apart", percent),
    variance_drift_max=Column("at most", percent),
    test_accuracy_of_rank=Column("test accuracy", percent, name="test_accuracy"),
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
    across="global_batch",
    heading=whole,
    techniques=lambda study, cells: study.remedies,
)
view(
    "Q4",
    "Trainings to an accuracy, run to their end",
    "trained_on",
    "trained_epochs reached trained_accuracy training_seconds trained_run_seconds training_joules"
    " training_speedup",
    trained_to_accuracy=lambda study, cells: study.trained_to_accuracy,
)


@view("Q5", "Orders of images, hashed", "sampler gpus set_epoch", "epoch different overlap unseen")
def sampler(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return what each sampler drew: extremes over ranks, seeds and epochs."""
    keys = ["sampler", "gpus", "set_epoch"]
    of_ranks = study.sampler.groupby([*keys, "trained", "seed", "rank"])
    drawn = study.sampler.assign(different=of_ranks["first_epoch"].transform("nunique"))
    spans = drawn.groupby(keys, sort=False)[["different", "overlap", "unseen"]]
    epochs = drawn.groupby(keys, sort=False)["epoch"].nunique()
    return spans.agg(partial(whole_span, between="–")).assign(epoch=epochs).reset_index()


@view("Q6", "Messages of a step", "way phase kind content", "messages bytes share_of_gradients")
def messages(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the messages of the last recorded step, by mode and content."""
    known = study.collectives
    last = known[known["step"] == known.groupby("way")["step"].transform("max")]
    groups = last.groupby(["way", "phase", "kind", "content"], sort=False)
    found = groups.agg(messages=("bytes", "size"), bytes=("bytes", "sum")).reset_index()
    return found.assign(share_of_gradients=found["bytes"] / known["gradient_bytes"].max())


view(
    "Q7",
    "Ranks after the last epoch: hashes are alike where the values are, bit for bit",
    "buffers seed rank",
    "parameters_hash buffers_hash variance_drift_mean variance_drift_max test_accuracy_of_rank",
    buffers=lambda study, cells: study.buffers,
)
