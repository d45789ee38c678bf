"""Every claim, in the order of the lab's questions."""

from collections.abc import Callable

from scaling.claims import (
    batch_size,
    buffers,
    communication,
    large_batches,
    link,
    messages,
    remedies,
    set_epoch,
    speedup,
    time_to_accuracy,
)
from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables

QUESTIONS = {
    "Q1": "Why are larger batches faster, or slower?",
    "Q2": "Which scaling is it?",
    "Q3.1": "Where does the time go?",
    "Q3.2": "How much of the link is used?",
    "Q4.1": "What does a large batch do to loss and accuracy?",
    "Q4.2": "Which remedies help?",
    "Q5": "What does set_epoch do?",
    "Q6": "What travels in a training step?",
    "Q7": "Do gradients alone keep the ranks alike?",
}
"""The questions by the number that the claims of each have."""

CLAIMS: list[Callable[[ClaimTables], list[Claim]]] = [
    batch_size.claims,  # Q1
    speedup.claims,  # Q2
    communication.claims,  # Q3.1
    link.claims,  # Q3.2
    large_batches.claims,  # Q4.1
    remedies.claims,  # Q4.2
    time_to_accuracy.claims,  # Q4.2
    set_epoch.claims,  # Q5
    messages.claims,  # Q6
    buffers.claims,  # Q7
]
"""Pure functions, those of one question after those of the one before it."""


def evaluate(tables: ClaimTables) -> list[Claim]:
    """The claims of a study, in the order of `QUESTIONS`."""
    return [claim for claims in CLAIMS for claim in claims(tables)]
