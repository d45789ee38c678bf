"""Tables on accuracy: question 4, what large batches cost and what helps."""

from operator import attrgetter
from typing import Any

import pandas as pd

from scaling.core.numbers import percent, significant, times, words
from scaling.report.frames import shown_once
from scaling.report.quantities import define, interval, points, scaled, span, view, whole
from scaling.report.table import Column
from scaling.report.views.scaling import CELL
from scaling.tables.schema import StudyTables

BY_GLOBAL_BATCH: Any = {"across": "global_batch", "heading": whole}

define(
    difference=Column(
        "points to the reference",
        value=lambda row: 0.0 if row.reference else row.difference,
        text=lambda row: "reference" if row.reference else points(row.difference),
        flags={
            "one seed": lambda row: row.seeds == 1 and not row.reference,
            "within noise": attrgetter("accuracy_within_spread"),
        },
    ),
    technique=Column("technique", words, attrgetter("options"), "remedy"),
    compared_with=Column("against", words),
    gain=Column(
        "",
        detail=interval("gain_low", "gain_high", 100),
        write=points,
        flags={
            "at an end of its rates": attrgetter("at_edge"),
            "plain SGD at an end": attrgetter("compared_at_edge"),
        },
    ),
    global_batch=Column("global batch", whole),
    remedy=Column("technique", words),
    learning_rate=Column("rate", significant),
    technique_accuracy=Column(
        "test accuracy",
        percent,
        name="test_accuracy",
        flags={
            "all diverged": lambda row: row.diverged_seeds == row.seeds,
            "some diverged": lambda row: 0 < row.diverged_seeds < row.seeds,
        },
    ),
    test_difference=Column("points to the reference", points),
    accuracy=Column("accuracy", percent),
    images=Column("", scaled(1e-3), lambda row: words(row.remedy)),
    trained_on=Column("GPUs × b", text="{0.gpus} × {0.batch_size}".format, name="gpus"),
    trained_epochs=Column("epochs", whole, name="epochs"),
    reached=Column("reached", text="{0.reached} of {0.seeds}".format),
    trained_accuracy=Column(
        "test accuracy", percent, span("test_accuracy", percent), "test_accuracy"
    ),
    training_seconds=Column("seconds", significant, span("training_seconds")),
    trained_run_seconds=Column("with start-up", significant, span("run_seconds"), "run_seconds"),
    training_joules=Column("joules", significant, span("joules"), "joules"),
    training_speedup=Column("speedup", times, interval("speedup_low", "speedup_high"), "speedup"),
)


@view(
    "Q4",
    "Accuracy after equal epochs at the lab's rate",
    CELL,
    "epoch train_loss train_accuracy test_accuracy difference",
)
def accuracy(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    return shown_once(cells.dropna(subset="test_accuracy"))


@view(
    "Q4",
    "What each technique gains, points of test accuracy at equal epochs, by global batch",
    "technique compared_with",
    "gain",
    **BY_GLOBAL_BATCH,
)
def gains(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    found = study.remedies[study.remedies["compared_with"] != ""]
    return found.sort_values("global_batch", kind="stable")


@view(
    "Q4",
    "Techniques by global batch; the reference is the best plain SGD at the least",
    "global_batch remedy",
    "learning_rate technique_accuracy test_difference",
)
def techniques(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    return study.remedies.sort_values("global_batch", kind="stable")


@view("Q4", "Images to a test accuracy, in units of 1,000", "accuracy", "images", **BY_GLOBAL_BATCH)
def images_to_accuracy(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    return study.images_to_accuracy[study.images_to_accuracy["images"].lt(float("inf"))]


@view(
    "Q4",
    "Trainings to an accuracy, run to their end",
    "trained_on",
    "trained_epochs reached trained_accuracy training_seconds trained_run_seconds training_joules"
    " training_speedup",
)
def trained_to_accuracy(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    return study.trained_to_accuracy
