"""Evaluate a study: answers to all questions of the lab, and all claims."""

from collections.abc import Callable

from scaling.claims import accuracy, ranks_int8, scaling
from scaling.claims.claim import Answer, Findings
from scaling.tables.schema import StudyTables

ANSWERS: dict[str, Callable[[StudyTables], Answer]] = {
    "Q1": scaling.batches,
    "Q2": scaling.speedups,
    "Q3.1": scaling.parts,
    "Q3.2": scaling.bandwidth,
    "Q4": accuracy.answer,
    "Q5": ranks_int8.order,
    "Q6": ranks_int8.messages,
    "Q7": ranks_int8.replicas,
    "B": ranks_int8.int8,
}
"""Maps each question to the function that answers it; without data, a claim says what to add."""


def evaluate(tables: StudyTables, learned: bool = True) -> Findings:
    """Return a study's answers and claims. If not `learned` (random images), Q4 is left out."""
    found = {name: own(tables) for name, own in ANSWERS.items() if learned or name != "Q4"}
    answers = {name: answer.text for name, answer in found.items() if answer.text}
    return Findings(tables.study, answers, [one for own in found.values() for one in own.claims])
