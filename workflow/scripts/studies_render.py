"""Render the index of the stored studies, from the tables of their replays."""

from collections import Counter
from operator import attrgetter
from pathlib import Path

import pandas as pd

from scaling.claims.claim import SYMBOLS, read
from scaling.config import stored
from scaling.core import command_line, files
from scaling.core.errors import UserError
from scaling.report import frames, overview, page, provenance
from scaling.report.table import Column, View, tables
from scaling.tables import schema

HEADS = {
    "headline": "measured on",
    "run": "first to look at",
    "scales": "more GPUs",
    "verdicts": "claims",
}
VIEW = View(
    "studies",
    "Studies, what they found, and where",
    lambda rows: pd.DataFrame(rows, columns=["study", "link", "command", *HEADS]),
    [Column("study", detail=attrgetter("command"), name="study", link=attrgetter("link"))],
    [Column(head, name=name) for name, head in HEADS.items()],
)


def _found(config: Path, shared: Path) -> dict[str, str]:
    """Return what a study found, from its tables and claims."""
    counts = Counter(claim.verdict for claim in read(shared / "claims.json").claims)
    name = stored.read(config.parent)["study"]
    there = (table.path(shared, name) for table in schema.TABLES.values())
    made = [path for path in there if path.exists()]
    study = schema.read_study(name, made, shared / "topology.txt", config.parent / stored.MANIFEST)
    cards = overview.cards(study, frames.cells(study))
    said = [f"{card.title}: {card.headline.striptags()}" for card in cards[:2]]
    verdicts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in SYMBOLS if counts[verdict])
    values = [provenance.headline(study), *(said or ["", ""]), verdicts]
    return dict(zip(HEADS, values, strict=True))


@command_line.script
def main(folder: Path, results: Path, template: Path) -> None:
    """Write results/studies.html, with a row for each study in `folder`."""
    rows = []
    for config in sorted(folder.glob(f"*/{stored.CONFIG}")):
        name = config.parent.name
        report = results / "replay" / name / "report.html"
        row = {"study": name, "command": f"make replay STUDY={name}"}
        if report.exists():
            row |= {"link": report.relative_to(results).as_posix(), "command": ""}
        try:
            row |= _found(config, report.parent / "tables")
        except UserError as error:
            row["headline"] = f"cannot be shown: {error}"
        rows.append(row)
    html = page.render(template, count=len(rows), tables=tables([VIEW], rows))
    files.write_text(results / "studies.html", html)
