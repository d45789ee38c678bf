"""docs/findings.md as tests read it."""

from pathlib import Path

FINDINGS = Path(__file__).parents[2] / "docs/findings.md"


def section(study: str) -> str:
    """The part on a stored study, which links to it."""
    parts = FINDINGS.read_text(encoding="utf-8").split("\n## ")
    (part,) = (part for part in parts if f"(../studies/{study}/README.md)" in part)
    return part
