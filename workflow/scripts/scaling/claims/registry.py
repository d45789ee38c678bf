"""Every claim, in the order of the lab's questions."""

from collections.abc import Callable

from scaling.claims import (
    batch_size,
    buffers,
    communication,
    gaps,
    large_batches,
    messages,
    rates,
    set_epoch,
    speedup,
    techniques,
    time_to_accuracy,
)
from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables

CLAIMS: list[Callable[[ClaimTables], list[Claim]]] = [
    batch_size.claims,  # Q1
    speedup.claims,  # Q2
    communication.claims,  # Q3.1, Q3.2
    large_batches.claims,  # Q4.1
    rates.claims,  # Q4.2
    gaps.claims,
    techniques.claims,
    time_to_accuracy.claims,
    set_epoch.claims,  # Q5
    messages.claims,  # Q6
    buffers.claims,  # Q7
]
"""Pure functions, those of one question after those of the one before it."""


def evaluate(tables: ClaimTables) -> list[Claim]:
    """The claims of a study, in the order of the lab's questions."""
    return [claim for claims in CLAIMS for claim in claims(tables)]
