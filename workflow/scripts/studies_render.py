"""Render the index of the stored studies, from the tables of their replays."""

from collections import Counter
from operator import attrgetter
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.claims.claim import SYMBOLS, read
from scaling.config import stored
from scaling.core import command_line, files
from scaling.core import numbers as fmt
from scaling.core.errors import UserError
from scaling.report import frames, overview, page, provenance
from scaling.report.table import Column, View, tables
from scaling.tables import schema


def _command(row: Any) -> str:
    return "" if row.link else f"make replay STUDY={row.study}"


COLUMNS = ["headline", "cells", "run", "scales", "verdicts", "CPU", "Commit", "measured"]
VIEW = View(
    "studies",
    "Studies, what they found, and where",
    lambda rows: pd.DataFrame(rows, columns=["study", "link", *COLUMNS]),
    [Column("study", detail=_command, name="study", link=attrgetter("link"))],
    [
        Column("measured on", detail=attrgetter("CPU"), name="headline"),
        Column("cells", name="cells"),
        Column("first to look at", name="run"),
        Column("more GPUs", name="scales"),
        Column("claims", name="verdicts"),
        Column("commit", detail=attrgetter("measured"), name="Commit"),
    ],
)


def _row(config: Path, shared: Path) -> dict[str, Any]:
    """Return a study's row of the index, from its tables and claims."""
    counts = Counter(claim.verdict for claim in read(shared / "claims.json").claims)
    name = stored.read(config.parent)["study"]
    there = (table.path(shared, name) for table in schema.TABLES.values())
    made = [path for path in there if path.exists()]
    study = schema.read_study(name, made, shared / "topology.txt", config.parent / stored.MANIFEST)
    measured = study.provenance[study.provenance["status"] != "missing"]
    row = dict(provenance.run_facts(measured)) | {
        "headline": provenance.headline(study),
        "verdicts": ", ".join(f"{counts[name]} {name}" for name in SYMBOLS if counts[name]),
    }
    if len(measured):
        run, scales, *_ = overview.cards(study, frames.cells(study))
        statuses = study.timing["status"].value_counts(sort=False)
        row |= {
            key: f"{card.title}: {card.headline}"
            for key, card in (("run", run), ("scales", scales))
        }
        row["cells"] = ", ".join(
            f"{count} {fmt.words(status)}" for status, count in statuses.items()
        )
        row["measured"] = measured["started"].min()[:10]
    return row


@command_line.script
def main(folder: Path, results: Path, template: Path) -> None:
    """Write results/studies.html, with a row for each study in `folder`."""
    rows = []
    for config in sorted(folder.glob(f"*/{stored.CONFIG}")):
        report = results / "replay" / config.parent.name / "report.html"
        link = report.relative_to(results).as_posix() if report.exists() else ""
        try:
            row = _row(config, report.parent / "tables")
        except UserError as error:
            row = {"headline": f"cannot be shown: {error}"}
        rows.append({"study": config.parent.name, "link": link, **row})
    html = page.render(template, count=len(rows), tables=tables([VIEW], rows))
    files.write_text(results / "studies.html", html)
