"""Collect answer, claims and tables of each question of the lab."""

from typing import Any, NamedTuple

import pandas as pd

from scaling.claims.claim import Findings
from scaling.config.stored import read_config
from scaling.report.page import REPORT
from scaling.report.table import View, tables
from scaling.report.views import ranks_int8, scaling
from scaling.tables.noise import NO_TIME
from scaling.tables.schema import StudyTables

PARTS = scaling.TABLES | ranks_int8.TABLES
"""Tables of each part of the page, in order."""


class Question(NamedTuple):
    """A question of the lab. The ids of its claims begin with `name`.

    `needs` names the settings with which a study answers the question.
    """

    name: str
    title: str
    needs: str
    figures: str = ""


QUESTIONS = [
    Question(name, **texts) for name, texts in read_config(REPORT / "questions.yaml").items()
]
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
    needs = {one.name: one.needs for one in QUESTIONS}
    if len(notes):
        needs["Q2"] = notes.iloc[0]
    techniques = [("Q4: what helps", "part accuracy")] * ("Q4" in findings.answers)
    return [
        (f"{one.name}: {one.title}", needs[one.name])
        for one in QUESTIONS
        if one.name not in findings.answers and (one.name != "Q4" or learns)
    ] + techniques * study.remedies.empty
