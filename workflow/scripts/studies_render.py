"""Render an index of the stored studies, from the tables of their replays."""

from pathlib import Path

from markupsafe import Markup

from scaling.config import stored
from scaling.core import command_line, files
from scaling.core.errors import UserError
from scaling.report import cells, overview, page, provenance
from scaling.report.table import Figure, Table, fill
from scaling.tables import schema


def _found(config: Path, replay: Path) -> list[str]:
    """Return a study's headline, advice, and gain from more GPUs, or why it cannot be shown."""
    try:
        made = [*(replay / "tables").rglob("*.csv")]
        if not made:
            raise UserError(f"{replay} has no tables")
        name, manifest = stored.read(config.parent)["study"], config.parent / stored.MANIFEST
        study = schema.read_study(name, made, manifest)
    except UserError as error:
        return [f"cannot be shown: {error}", "–", "–"]
    heads = {one.kind: one.headline for one in overview.cards(study, cells.of_study(study))}
    cards = [heads.get(kind, Markup("–")).striptags() for kind in ("do", "gpus")]
    return [provenance.headline(study), *cards]


@command_line.script
def main(folder: Path, results: Path) -> None:
    """Write results/studies.html, with one row per study in `folder`."""
    rows = []
    for config in sorted(folder.glob(f"*/{stored.CONFIG}")):
        name = config.parent.name
        report = results / "replay" / name / "report.html"
        link = fill('<a href="{}">{}</a>', report.relative_to(results).as_posix(), name)
        command = Figure(name, detail=f"make replay STUDY={name}")
        first = Figure(link) if report.exists() else command
        rows.append([first, *map(Figure, _found(config, report.parent))])
    heads = [(head, "") for head in ("study", "measured on", "what to do", "more GPUs")]
    count = str(len(rows))
    if not rows:
        rows = [[Figure("none yet", detail="make pack STUDY=name"), *[Figure("–")] * 3]]
    summary = (
        "{} in studies/. A name leads to its report; one without a link has none yet, and the "
        "command below it makes it. <code>make compare A=… B=…</code> sets two beside each other."
    )
    contents = {
        "title": "Stored studies",
        "summary": fill(summary, count),
        "tables": [Table("studies", "Studies, what they found, and where", heads, rows)],
    }
    template = page.REPORT / "tables.html.j2"
    files.write_text(results / "studies.html", page.render(template, **contents))
