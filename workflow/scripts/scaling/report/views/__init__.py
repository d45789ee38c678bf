"""Collect answer, claims and tables of each question of the lab."""

from typing import Any, NamedTuple

import pandas as pd

from scaling.claims.claim import Findings
from scaling.report.table import View, tables
from scaling.report.views import ranks_int8, scaling
from scaling.tables.noise import NO_TIME
from scaling.tables.schema import StudyTables

PARTS = scaling.TABLES | ranks_int8.TABLES
"""Tables of each part of the page, in order."""


class Question(NamedTuple):
    """A question of the lab. The ids of its claims begin with `name`."""

    name: str
    title: str
    figures: str = ""


TERMS = [
    ("b", "batch size per GPU; the global batch is b times the number of GPUs"),
    ("ddp", "DistributedDataParallel: one process for each GPU"),
    ("dp", "DataParallel: one process for all GPUs"),
    ("configuration", "a recipe, a strategy, a number of GPUs and a batch size"),
    ("run", "one execution of a configuration; seed and number of the repeat tell runs apart"),
    ("training time", "seconds of an epoch on batches that are in memory already"),
    ("not settled", "epoch times still changed at the end of the runs"),
    ("weak scaling", "each GPU keeps its batch, so the global batch grows with the GPUs"),
    ("strong scaling", "the GPUs share one global batch"),
    ("communication", "training time with the gradient exchange minus that without it"),
    ("GPU-seconds", "seconds of an epoch times the number of GPUs"),
    ("start-up", "seconds from a run’s start to its first epoch: imports, compilation, data"),
]
"""Terms used on the page, with their meaning."""
QUESTIONS = [
    Question("Q1", "How does an epoch’s time depend on the batch size, and why?", "epoch_time"),
    Question("Q2", "How much faster are more GPUs? Weak or strong scaling?", "speedup"),
    Question("Q3.1", "How much of the time is communication?", "communication"),
    Question("Q3.2", "What bandwidth do gradients reach?", "bandwidth"),
    Question("Q4", "What does a large batch cost, and what helps?", "learning remedies"),
    Question("Q5", "What does set_epoch do?"),
    Question("Q6", "What is communicated besides gradients?"),
    Question("Q7", "Is exchanging gradients enough?"),
    Question("B", "What does int8 quantization cost?", "quantization_histograms"),
]
SEEDS = "part proofs, synchronization.seeds with 3 or more"
GPUS = "grid.gpus with 2 or more"
NEEDED = {
    "Q1": "grid.gpus with 1, and two or more grid.batch_sizes",
    "Q2": "grid.gpus with 1 and 2, on one machine",
    "Q3.1": f"{GPUS}, and training.instrumented_iterations above 0",
    "Q3.2": f"{GPUS}, and training.instrumented_iterations above 0",
    "Q4": f"{GPUS}, or larger grid.batch_sizes; techniques: part accuracy",
    "Q5": SEEDS,
    "Q6": f"{SEEDS}, and {GPUS}",
    "Q7": SEEDS,
    "B": "part int8, quantization.seeds",
}
"""Settings with which a study answers each question."""
OF_COMMANDS = [
    ("test_accuracy", "which batch size learns as well", "epoch(…, test_accuracy=accuracy)"),
    ("loading_share", "how long it waits for data", "for batch in data_wait(loader):"),
    ("slower_share", "kernels and messages", "a recipe without command"),
]
"""Values that a user's command may not report: column, meaning, and code that reports them."""


def answered(study: StudyTables, cells: pd.DataFrame, findings: Findings) -> list[dict[str, Any]]:
    """Return each question with its answer (None if not measured), claims, and tables."""
    made = []
    for question in QUESTIONS:
        answer = findings.answers.get(question.name)
        claims = [one for one in findings.claims if one.id.startswith(question.name)]
        shown = tables(PARTS[question.name], study, cells) if answer else []
        view = View(
            f"{question.name}-claims",
            "What was expected, and what was measured",
            "hypothesis",
            "verdict",
            pd.DataFrame,
            across="configuration",
            heading=lambda name: name or "study",
        )
        more = tables([view] * bool(claims), claims) + shown[1:]
        made.append({"question": question, "answer": answer, "tables": shown[:1], "more": more})
    return made


def missing(study: StudyTables, cells: pd.DataFrame, findings: Findings) -> list[tuple[str, str]]:
    """Return pairs: what a study did not measure, and the setting or code that measures it.

    Q4 (accuracy) is not listed for a synthetic dataset, because its images teach nothing.
    """
    if cells["unit"].fillna("").ne("").all():
        return [(what, add) for name, what, add in OF_COMMANDS if cells[name].isna().all()]
    learns = study.manifest["source"] != "synthetic"
    notes = study.speedup["note"].fillna("")
    notes = notes[notes.str.startswith("no ratio") & (notes != NO_TIME)]
    needed = NEEDED | {"Q2": next(iter(notes), NEEDED["Q2"])}
    techniques = [("Q4: what helps", "part accuracy")] * ("Q4" in findings.answers)
    return [
        (f"{one.name}: {one.title}", needed[one.name])
        for one in QUESTIONS
        if one.name not in findings.answers and (one.name != "Q4" or learns)
    ] + techniques * study.remedies.empty
