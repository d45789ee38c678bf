"""The findings of a study: the answer to each question of the lab, and all claims."""

from collections.abc import Callable
from dataclasses import replace

from scaling.claims import accuracy, communication, ranks_int8, scaling
from scaling.claims.claim import Answer, Claim, Findings
from scaling.tables.schema import StudyTables

ANSWERS: dict[str, Callable[[StudyTables], Answer]] = {
    "Q1": scaling.batches,
    "Q2": scaling.speedups,
    "Q3.1": communication.parts,
    "Q3.2": communication.bandwidth,
    "Q4": accuracy.answer,
    "Q5": ranks_int8.order,
    "Q6": ranks_int8.messages,
    "Q7": ranks_int8.replicas,
    "B": ranks_int8.int8,
}
"""The function that answers each question; without data, its claim says what to add."""


def evaluate(tables: StudyTables, learned: bool = True) -> Findings:
    """Return a study's answers and claims in the order of the questions, grouped by kind.

    Claims of one kind that are all "not measured" and have the same sentence become one. If not
    `learned` (the images were random), question 4, on accuracy, is left out.
    """
    found = {name: own(tables) for name, own in ANSWERS.items() if learned or name != "Q4"}
    kinds: dict[str, list[Claim]] = {}
    for claim in (claim for answer in found.values() for claim in answer.claims):
        kinds.setdefault(claim.kind, []).append(claim)
    for kind, own in kinds.items():
        sentences = {(claim.verdict, claim.sentence) for claim in own}
        if len(own) > 1 and len(sentences) == 1 and own[0].verdict == "not measured":
            kinds[kind] = [replace(own[0], id=kind, configuration="")]
    answers = {name: answer.text for name, answer in found.items() if answer.text}
    return Findings(tables.study, answers, [claim for own in kinds.values() for claim in own])
