"""The answers to questions 5 to 7, made of a record of experiments."""

from typing import Any

from scaling.claims import q5_to_q7
from scaling.claims.claim import Answer
from scaling.tables.experiments import synchronization
from scaling.tables.schema import StudyTables


def answers(document: dict[str, Any]) -> tuple[Answer, Answer, Answer]:
    """The answers to question 5, 6 and 7."""
    found = {
        "sampler": synchronization.orders([document]),
        "collectives": synchronization.collectives([document]),
        "buffers": synchronization.buffers([document]),
    }
    tables = StudyTables("demo", found, "", {})
    return q5_to_q7.order(tables), q5_to_q7.messages(tables), q5_to_q7.replicas(tables)
