"""Evaluate the claims of a study on the lab's questions: answers, evidence, verdicts."""

from dataclasses import asdict
from pathlib import Path

from scaling.claims import questions
from scaling.core import command_line, files
from scaling.registry.dataset import SYNTHETIC
from scaling.tables import schema


@command_line.script
def main(study: str, output: Path, source: str = "", tables: tuple[Path, ...] = ()) -> None:
    """Write claims.json from the study's tables; of random images nothing is learned."""
    found = schema.StudyTables(study, schema.read_files(tables), "", {})
    findings = questions.evaluate(found, learned=source != SYNTHETIC.name)
    files.write_json(output, asdict(findings))
