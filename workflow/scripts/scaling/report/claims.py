"""The claims of a question, as a table of hypotheses by configurations."""

from collections.abc import Sequence
from typing import Any

from scaling.claims import texts
from scaling.claims.claim import Claim, Verdict

VERDICTS: dict[Verdict, str] = {
    "supported": "✓",
    "refuted": "✗",
    "in part": "◐",
    "unclear": "?",
    "not measured": "–",
}
"""Each verdict with its symbol, in the order of the counts."""


def claim_table(claims: Sequence[Claim]) -> dict[str, Any]:
    """Arrange claims by hypothesis and configuration, both in order of appearance.

    A row has a hypothesis, its test, and its claim in each configuration or None.
    """
    configurations = list(dict.fromkeys(claim.configuration for claim in claims))
    by_kind: dict[str, dict[str, Claim]] = {}
    for claim in claims:
        by_kind.setdefault(claim.kind, {})[claim.configuration] = claim
    rows = [
        {
            "hypothesis": next(iter(own.values())).hypothesis,
            "test": texts.texts()[kind].test,
            "claims": [own.get(name) for name in configurations],
        }
        for kind, own in by_kind.items()
    ]
    return {"configurations": configurations, "rows": rows}
