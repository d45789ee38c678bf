"""The claims on questions 5 to 7, made of a record of experiments through its tables' files."""

from pathlib import Path
from typing import Any

from scaling.claims import buffers, messages, set_epoch
from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables
from scaling.tables import schema
from scaling.tables.experiments.synchronization import accuracy, collectives, orders
from scaling.tables.experiments.synchronization import buffers as buffers_table

TABLES = {
    "sampler": orders,
    "sampler_accuracy": accuracy,
    "collectives": collectives,
    "buffers": buffers_table,
}


def make(folder: Path, document: dict[str, Any] | None) -> dict[str, Claim]:
    """The claims of a document, None for no record, by id; its tables are written to `folder`."""
    found = {}
    for name, table in TABLES.items():
        schema.write(name, table([document] if document else []), folder / f"{name}.csv")
        found[name] = schema.read(name, folder / f"{name}.csv")
    whole = ClaimTables("demo", found)
    modules = (set_epoch, messages, buffers)
    return {claim.id: claim for module in modules for claim in module.claims(whole)}
