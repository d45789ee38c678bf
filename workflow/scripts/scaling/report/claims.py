"""The claims in the report: those of a section's questions, and the verdicts in the summary."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from scaling.claims import texts
from scaling.claims.claim import Claim, Evidence, Verdict
from scaling.core import numbers as fmt
from scaling.report import remedy_claims
from scaling.report.remedy_claims import RemedyTable

SCOPE = re.compile(r"(\S+, \d+ GPUs?|[^\s/]+/\S+( on \d+ GPUs?)?): ")
"""What part of a study a sentence is about, where it begins with that: `fast/ddp on 4 GPUs: `."""
CLAUSE_END = re.compile(r"[.:;] |\.$")
LONGEST = 110

SYMBOLS: dict[Verdict, str] = {"supported": "✓", "refuted": "✗", "undecided": "?"}


@dataclass(frozen=True)
class Answer:
    """One of the lab's questions with the claims that answer it.

    Those on one remedy each, many sentences alike, are the rows of a table.
    """

    number: str
    question: str
    claims: list[Claim]
    remedies: RemedyTable | None


def answers(claims: list[Claim], numbers: tuple[str, ...]) -> list[Answer]:
    """The questions of these numbers, each with its claims; the order is that of `numbers`."""
    return [
        _answer(number, [one for one in claims if one.question == number]) for number in numbers
    ]


def _answer(number: str, claims: list[Claim]) -> Answer:
    rows = [claim for claim in claims if remedy_claims.is_on_remedy(claim)]
    others = [claim for claim in claims if claim not in rows]
    return Answer(number, texts.questions()[number], others, remedy_claims.table(rows))


def verdicts(claims: list[Claim]) -> dict[str, Any]:
    """What the summary says of all claims: how many have which verdict, and which fall short."""
    counted = Counter(claim.verdict for claim in claims)
    parts = [f"{counted[verdict]} {verdict}" for verdict in SYMBOLS if counted[verdict]]
    open_claims = [claim for claim in claims if claim.verdict == "undecided"]
    per_question = Counter(claim.question for claim in open_claims)
    return {
        "total": fmt.plural(len(claims), "claim"),
        "counts": ", ".join(parts) or "none",
        "refuted": [claim for claim in claims if claim.verdict == "refuted"],
        "undecided": open_claims,
        "undecided_in": f"{len(open_claims)} undecided: "
        + ", ".join(f"{count} on {number}" for number, count in per_question.items()),
    }


def figures(evidence: Evidence) -> str:
    """The figures of a piece of evidence in one line: `speedup 3.20, gpus 4`."""
    return ", ".join(
        f"{name.replace('_', ' ')} {_written(value)}" for name, value in evidence.figures.items()
    )


def first_clause(sentence: str) -> str:
    """What a sentence is about and its beginning, up to the first stop of any kind.

    A clause of more than `LONGEST` characters ends with a part of it, and `…`.
    """
    scope = SCOPE.match(sentence)
    start = scope.end() if scope else 0
    clause = CLAUSE_END.split(sentence[start:], maxsplit=1)[0]
    if len(clause) > LONGEST:
        within = clause[:LONGEST]
        clause = f"{within.rpartition(', ')[0] or within.rpartition(' ')[0]} …"
    return sentence[:start] + clause


def _written(value: float | int | str) -> str:
    """A count of millions, bytes for one, is written in full."""
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) >= fmt.MILLION
        return f"{value:,.0f}" if whole else fmt.significant(value)
    return str(value)
