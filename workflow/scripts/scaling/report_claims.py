"""The claims in the report: those of a section's questions, and the verdicts in the summary."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from scaling import report_format as fmt
from scaling.claims.claim import Claim, Evidence, Verdict
from scaling.claims.registry import QUESTIONS

SYMBOLS: dict[Verdict, str] = {"supported": "✓", "refuted": "✗", "undecided": "?"}


@dataclass(frozen=True)
class Answer:
    """One of the lab's questions with the claims that answer it."""

    number: str
    question: str
    claims: list[Claim]


def answers(claims: list[Claim], numbers: tuple[str, ...]) -> list[Answer]:
    """The questions of these numbers, each with its claims; the order is that of `numbers`."""
    return [
        Answer(number, QUESTIONS[number], [one for one in claims if one.question == number])
        for number in numbers
    ]


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


def _written(value: float | int | str) -> str:
    return fmt.significant(value) if isinstance(value, float) else str(value)
