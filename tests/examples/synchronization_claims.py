"""The claims on questions 5 to 7, made of a record of experiments."""

from typing import Any

from scaling.claims import buffers, messages, set_epoch
from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables
from scaling.tables.experiments import synchronization


def make(document: dict[str, Any]) -> dict[str, Claim]:
    """The claims of a document, by id."""
    tables = {
        "sampler": synchronization.orders([document]),
        "sampler_accuracy": synchronization.accuracy([document]),
        "collectives": synchronization.collectives([document]),
        "buffers": synchronization.buffers([document]),
        "agreement": synchronization.agreement([document]),
    }
    whole = ClaimTables("demo", tables)
    functions = (set_epoch.claims, messages.claims, messages.sharding, buffers.claims)
    return {claim.id: claim for function in functions for claim in function(whole)}
