"""Sections of a study's page: each question of the lab with its answer, claims and tables."""

from typing import Any, NamedTuple

import pandas as pd

from scaling.claims.claim import Findings
from scaling.report.table import tables
from scaling.report.views import ranks_int8, scaling
from scaling.report.views.ranks_int8 import STEPS
from scaling.tables.accuracy import EPOCH
from scaling.tables.schema import StudyTables

PARTS = scaling.TABLES | ranks_int8.TABLES
"""Tables of each part of the page, in order."""


class Question(NamedTuple):
    """A question of the lab, and the contents of its section of the page.

    `name` is the key of the answer and of tables, and the beginning of a claim's question. `add` is
    the setting with which a study measures it; `figures` are names separated by blanks.
    """

    name: str
    title: str
    add: str
    figures: str = ""


TERMS = [
    ("b", "batch size per GPU; the global batch is b times the number of GPUs"),
    ("configuration", "a recipe, a strategy, a number of GPUs and a batch size"),
    ("run", "one execution of a configuration, of one seed and repeat"),
    ("training time", "seconds of an epoch on batches that are in memory already"),
    ("weak scaling", "each GPU keeps its batch, so the global batch grows with the GPUs"),
    ("strong scaling", "the GPUs share one global batch"),
    ("communication", "training time with the gradient exchange minus that without it"),
    ("GPU-seconds", "seconds of an epoch times the number of GPUs"),
    ("start-up", "seconds from a run’s start to its first epoch: imports, compilation, data"),
]
"""Terms used on the page, with their meaning."""
GRID = "grid: {gpus: [1, 2], batch_sizes: [32, 128, 512]}"
PROOFS = "synchronization: {seeds: [0, 1, 2]}"
INT8 = "quantization: {seeds: [0, 1, 2]}"
QUESTIONS = [
    Question("Q1", "Why is an epoch faster with a larger batch?", GRID, "epoch_time"),
    Question("Q2", "How much faster are more GPUs? Weak or strong scaling?", GRID, "speedup"),
    Question("Q3.1", "How much of the time is communication?", GRID, "communication"),
    Question("Q3.2", "What bandwidth do gradients reach?", GRID, "bandwidth"),
    Question("Q4", "What does a large batch cost, and what helps?", GRID, "learning remedies"),
    Question("Q5", "What does set_epoch do?", PROOFS),
    Question("Q6", "What is communicated besides gradients?", PROOFS),
    Question("Q7", "Is exchanging gradients enough?", PROOFS),
    Question("B", "What does int8 quantization cost?", INT8, "quantization_histograms"),
]


def answered(study: StudyTables, cells: pd.DataFrame, findings: Findings) -> list[dict[str, Any]]:
    """Return each question with its answer (None if not measured), its claims and its tables.

    `tables` holds the first table, `steps` the tables in `STEPS`, `more` all other tables.
    """
    made = []
    for question in QUESTIONS:
        answer = findings.answers.get(question.name)
        claims = [one for one in findings.claims if one.question.startswith(question.name)]
        shown = tables(PARTS[question.name], study, cells) if answer else []
        found = {
            "tables": shown[:1],
            "steps": [one for one in shown if one.name in STEPS],
            "more": [one for one in shown[1:] if one.name not in STEPS],
        }
        made.append({"question": question, "answer": answer, "claims": claims} | found)
    return made


OF_COMMANDS = [
    ("test_accuracy", "which batch size learns as well", "epoch(…, test_accuracy=accuracy)"),
    ("loading_share", "how long it waits for data", "for batch in data_wait(loader):"),
    ("slower_share", "kernels and messages", "a recipe without command"),
]
"""What a command may not report: column, meaning, and the code that reports it."""


def missing(
    study: StudyTables, cells: pd.DataFrame, questions: list[dict[str, Any]]
) -> list[tuple[str, str]]:
    """Return pairs: what a study did not measure, and the setting or code that measures it."""
    if cells["unit"].fillna("").ne("").all():
        return [(what, add) for name, what, add in OF_COMMANDS if cells[name].isna().all()]
    absent = [one["question"] for one in questions if not one["answer"]]
    found = [(f"{one.name}: {one.title}".replace("B:", "Part B:"), one.add) for one in absent]
    short, ratios = study.accuracy["epoch"].max() < EPOCH, study.speedup
    strong, trained = "fixed_global_batch_speedup", study.trained_to_accuracy
    also = [
        (short, "accuracy after the 5th epoch (Q4.1)", "training: {measured_epochs: 4}"),
        (
            study.remedies.empty,
            "techniques (Q4.2)",
            "convergence: {recipes: [lars]}",
        ),
        (
            ratios[strong].isna().all(),
            "strong scaling of an epoch (Q2)",
            "grid: {strong_scaling: true}",
        ),
        (trained.empty, "time to an accuracy", "time_to_accuracy: {gpus: [1, 2]}"),
        (study.costs["money_per_epoch"].isna().all(), "money", "cost: {per_gpu_hour: 2.5}"),
    ]
    return found + [(what, add) for lacks, what, add in also if lacks]
