"""Evaluate the claims of a study on the lab's questions: sentences, evidence, verdicts."""

from pathlib import Path

from scaling.claims import claim, registry
from scaling.claims.claim_tables import ClaimTables
from scaling.core import command_line
from scaling.tables import schema


@command_line.script
def main(study: str, output: Path, tables: tuple[Path, ...] = ()) -> None:
    """Write claims.json from the study's tables; claims without their table are not measured."""
    found = ClaimTables(study, schema.read_files(study, tables))
    claim.write(output, study, registry.evaluate(found))
