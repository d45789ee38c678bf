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
    technique_accuracy=Column(
        "test accuracy",
        percent,
        lambda row: f"rate {significant(row.learning_rate)}",
        "test_accuracy",
        flags={
            "all diverged": lambda row: row.diverged_seeds == row.seeds,
            "some diverged": lambda row: 0 < row.diverged_seeds < row.seeds,
            "at an end of its rates": attrgetter("at_edge"),
        },
    ),
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
    training_speedup=Column("speedup", times, interval("speedup"), "speedup"),
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
    "Techniques by global batch: test accuracy at equal epochs",
    "technique",
    "technique_accuracy",
    **BY_GLOBAL_BATCH,
)
def techniques(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    return study.remedies


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
