"""The parts of a study's page: the lab's questions, with their answers, claims and tables."""

from typing import Any, NamedTuple

import pandas as pd

from scaling.claims.claim import Findings
from scaling.report.quantities import PARTS
from scaling.report.table import tables
from scaling.report.views import int8, scaling
from scaling.tables.schema import StudyTables

MODULES = (int8, scaling)
"""All of them add to `PARTS`, in the order of their names."""


class Question(NamedTuple):
    """A question of the lab, and the contents of its section.

    `name` is that of its answer and its tables, and the prefix of its claims' questions; `key` is
    the configuration key that adds it to a study; `figures` are shown in its section.
    """

    name: str
    title: str
    key: str
    figures: str = ""


QUESTIONS = [
    Question("Q1", "Are larger batches faster?", "grid.batch_sizes", "epoch_time"),
    Question("Q2", "Strong or weak scaling?", "grid.gpus", "speedup"),
    Question("Q3.1", "Where does the time go?", "grid.gpus", "communication"),
    Question("Q3.2", "How fast do gradients travel?", "interconnect", "bandwidth"),
    Question(
        "Q4",
        "What do large batches cost, and what helps?",
        "convergence.recipes",
        "remedies learning",
    ),
    Question("Q5", "What does set_epoch do?", "synchronization"),
    Question("Q6", "Do only gradients travel?", "synchronization"),
    Question("Q7", "Do gradients alone keep ranks alike?", "synchronization"),
    Question("B", "What does int8 quantization cost?", "quantization", "quantization_histograms"),
]


def answered(study: StudyTables, cells: pd.DataFrame, findings: Findings) -> list[dict[str, Any]]:
    """Return every question with its answer, None if not measured, its claims and its tables.

    `more` are the tables that are folded: all but the first, and the lab's steps of Part B.
    """
    made = []
    commands = cells["unit"].fillna("").ne("").all()
    there = {
        "grid.gpus": cells["gpus"].nunique(),
        "grid.batch_sizes": cells["batch_size"].nunique(),
    }
    for question in QUESTIONS:
        if commands and there.get(question.key, 1) > 1:
            question = question._replace(key="recipes without command")
        answer = findings.answers.get(question.name)
        claims = [one for one in findings.claims if one.question.startswith(question.name)]
        shown = tables(PARTS[question.name], study, cells) if answer else []
        more = [one for one in shown[1:] if one.name not in int8.STEPS]
        found = {"tables": [one for one in shown if one not in more], "more": more}
        made.append({"question": question, "answer": answer, "claims": claims} | found)
    return made
