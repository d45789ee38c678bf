"""The README as tests read it."""

from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def section(study: str) -> str:
    """The README's part on a stored study, which links to it."""
    parts = README.read_text(encoding="utf-8").split("\n## ")
    (part,) = (part for part in parts if f"(studies/{study}/README.md)" in part)
    return part
