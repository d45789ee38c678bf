"""The claims of a study on the lab's questions: sentences, evidence, verdicts."""

from pathlib import Path

from scaling.claims import claim, claim_tables, registry
from scaling.core import command_line


@command_line.script
def main(study: str, output: Path, tables: tuple[Path, ...] = ()) -> None:
    """Write claims.json from the study's tables; a claim without its table is not measured."""
    found = claim_tables.read(study, tables)
    claim.write(output, study, registry.evaluate(found))
