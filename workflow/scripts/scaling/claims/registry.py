"""All claims, in the order of the lab's questions."""

from collections.abc import Callable
from dataclasses import replace

from scaling.claims import (
    batch_size,
    buffers,
    communication,
    large_batches,
    messages,
    quantization,
    rates,
    set_epoch,
    speedup,
    techniques,
    time_to_accuracy,
)
from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables

CLAIMS: dict[str, list[Callable[[ClaimTables], list[Claim]]]] = {
    "Q1": [batch_size.claims],
    "Q2": [speedup.claims],
    "Q3.1": [communication.parts],
    "Q3.2": [communication.link],
    "Q4.1": [large_batches.claims],
    "Q4.2": [rates.claims, techniques.claims, time_to_accuracy.claims],
    "Q5": [set_epoch.claims],
    "Q6": [messages.claims, messages.sharding],
    "Q7": [buffers.claims],
    "B": [quantization.claims],
}
"""Pure functions by question; they return no claims if the study lacks their data."""


def evaluate(tables: ClaimTables, learned: bool = True) -> list[Claim]:
    """Return a study's claims in the order of the lab's questions, grouped by kind.

    A question without data has one claim, `not measured`; so has a kind that was never measured.
    Those on accuracy, question 4, are left out where nothing could be `learned`.
    """
    kinds: dict[str, list[Claim]] = {}
    for question, functions in CLAIMS.items():
        if question.startswith("Q4") and not learned:
            continue
        found = [claim for claims in functions for claim in claims(tables)]
        for claim in found or [tables.missing(question)]:
            kinds.setdefault(claim.kind, []).append(claim)
    for kind, own in kinds.items():
        said = {(claim.verdict, claim.sentence) for claim in own}
        if len(own) > 1 and len(said) == 1 and own[0].verdict == "not measured":
            kinds[kind] = [replace(own[0], id=kind, configuration="")]
    return [claim for own in kinds.values() for claim in own]
