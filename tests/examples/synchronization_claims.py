"""The answers to questions 5 to 7, made of a record of experiments."""

from typing import Any

from scaling.claims import q5, q6, q7
from scaling.claims.claim import Answer
from scaling.tables.experiments import synchronization
from scaling.tables.schema import StudyTables


def answers(document: dict[str, Any]) -> tuple[Answer, Answer, Answer]:
    """The answers to question 5, 6 and 7."""
    found = {
        "sampler": synchronization.orders([document]),
        "sampler_accuracy": synchronization.accuracy([document]),
        "collectives": synchronization.collectives([document]),
        "buffers": synchronization.buffers([document]),
    }
    tables = StudyTables("demo", found, "", {})
    return q5.answer(tables), q6.answer(tables), q7.answer(tables)
