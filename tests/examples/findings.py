"""docs/findings.md and docs/quantization.md as tests read them."""

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def section(study: str) -> str:
    """The part on a folder of studies/, which links to it."""
    pages = [DOCS / name for name in ("findings.md", "quantization.md")]
    parts = "".join(page.read_text(encoding="utf-8") for page in pages).split("\n## ")
    (part,) = (part for part in parts if f"(../studies/{study}/" in part)
    return part
