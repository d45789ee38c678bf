"""Evaluate the claims of a study on the lab's questions: sentences, evidence, verdicts."""

from pathlib import Path

from scaling.claims import claim, registry
from scaling.claims.claim_tables import ClaimTables
from scaling.core import command_line
from scaling.registry.dataset import SYNTHETIC
from scaling.tables import schema


@command_line.script
def main(study: str, output: Path, source: str = "", tables: tuple[Path, ...] = ()) -> None:
    """Write claims.json from the study's tables; claims without their table are not measured.

    From random images, the dataset's `source` synthetic, nothing is learned that could be judged.
    """
    found = ClaimTables(study, schema.read_files(study, tables))
    claims = registry.evaluate(found, learned=source != SYNTHETIC.name)
    claim.write(output, study, claims)
