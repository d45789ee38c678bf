"""Render the index of the stored studies, from the tables of their replays."""

from operator import attrgetter
from pathlib import Path

import pandas as pd

from scaling.config import stored
from scaling.core import command_line, files
from scaling.core.errors import UserError
from scaling.report import cells, overview, page, provenance
from scaling.report.table import Column, View, tables
from scaling.tables import schema

HEADS = {"headline": "measured on", "run": "first to look at", "scales": "more GPUs"}
VIEW = View(
    "studies",
    "Studies, what they found, and where",
    lambda rows: pd.DataFrame(rows, columns=["study", "link", "command", *HEADS]),
    [Column("study", detail=attrgetter("command"), name="study", link=attrgetter("link"))],
    [Column(head, name=name) for name, head in HEADS.items()],
)


def _found(config: Path, replay: Path) -> dict[str, str]:
    """Return what is below the `HEADS` for a study, from its tables; UserError without them."""
    name = stored.read(config.parent)["study"]
    there = (table.path(replay / "tables", name) for table in schema.TABLES.values())
    made = [path for path in there if path.exists()]
    if not made:
        raise UserError(f"{replay} has no tables")
    study = schema.read_study(name, made, None, config.parent / stored.MANIFEST)
    cards = overview.cards(study, cells.of_study(study))
    said = [f"{card.title}: {card.headline.striptags()}" for card in cards[:2]]
    return dict(zip(HEADS, [provenance.headline(study), *said], strict=False))


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
            row |= _found(config, report.parent)
        except UserError as error:
            row["headline"] = f"cannot be shown: {error}"
        rows.append(row)
    html = page.render(template, count=len(rows), tables=tables([VIEW], rows))
    files.write_text(results / "studies.html", html)
