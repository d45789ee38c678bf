"""The claims of a question as a table of hypotheses and configurations."""

from collections.abc import Sequence
from dataclasses import dataclass

from scaling.claims import texts
from scaling.claims.claim import Claim, Verdict

VERDICTS: dict[Verdict, str] = {
    "supported": "✓",
    "refuted": "✗",
    "in part": "◐",
    "unclear": "?",
    "not measured": "–",
}
"""Each verdict with its symbol, in the order in which they are counted."""


@dataclass(frozen=True)
class HypothesisRow:
    """One hypothesis, the rule it is put to, and its claim in each configuration or None."""

    hypothesis: str
    test: str
    claims: list[Claim | None]


@dataclass(frozen=True)
class ClaimTable:
    """The claims of one question."""

    configurations: list[str]
    rows: list[HypothesisRow]


def claim_table(claims: Sequence[Claim]) -> ClaimTable:
    """Arrange claims by hypothesis and configuration, both in the order of their appearance."""
    configurations = list(dict.fromkeys(claim.configuration for claim in claims))
    by_kind: dict[str, dict[str, Claim]] = {}
    for claim in claims:
        by_kind.setdefault(claim.kind, {})[claim.configuration] = claim
    return ClaimTable(
        configurations,
        [
            HypothesisRow(
                next(iter(own.values())).hypothesis,
                texts.texts()[kind].test,
                [own.get(name) for name in configurations],
            )
            for kind, own in by_kind.items()
        ],
    )
