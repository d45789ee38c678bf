"""Draw the figures of a study; write its report (one HTML page) and its answers (Markdown)."""

from pathlib import Path

from scaling.claims import claim
from scaling.claims.scaling import PARTS as PARTS_OF_EPOCH
from scaling.config import stored
from scaling.core import command_line, files
from scaling.figures import FIGURES, scaling, style
from scaling.report import cells, overview, page, provenance, where
from scaling.report.table import tables as tables_of
from scaling.report.views import PARTS, answered
from scaling.report.views import missing as lacking
from scaling.tables import schema


@command_line.script
def main(
    study: str,
    results: Path,
    manifest: Path,
    runs: Path,
    tables: tuple[Path, ...],
    figures: tuple[str, ...] = (),
    side_by_side: bool = False,
    replayed_from: str | None = None,
) -> None:
    """Draw `figures`, and write report.html and answers.md, in the folder `results`.

    The page shows `tables`, records in the folder `runs`, and claims.json. `side_by_side`:
    configurations ran at the same time. `replayed_from`: a stored study's folder, or null.
    """
    found = schema.read_study(study, tables, manifest)
    missing = [*map(claim.label, schema.rows_of(found.timing.query("status == 'missing'")))]
    measured = len(missing) < len(found.timing)
    drawn = results / "figures" / study
    for name in figures:
        style.save(getattr(scaling, f"draw_{name}"), found, drawn / f"{name}.svg")
    of_cells = cells.of_study(found)
    if not measured:
        of_cells = of_cells.iloc[:0]
    beside_questions = ("gpus", "where", "cells", "limits")
    cards, logs = overview.cards(found, of_cells), Path(replayed_from or "", "logs")
    topology = results / "tables/topology.txt"
    findings = claim.read(results / "tables/claims.json")
    values = {
        "study": study,
        "headline": provenance.headline(found),
        "title": provenance.title(found, of_cells),
        "lead": overview.lead(found, of_cells, cards),
        "lacking": lacking(found, of_cells, findings) if measured else [],
        "facts": provenance.facts(found).items(),
        "summary": provenance.summary(found, of_cells),
        "on_cpu": schema.on_cpu(found.provenance),
        "missing": missing if measured else [],
        "machine": provenance.unfit(found.machine),
        "side_by_side": side_by_side,
        "replayed_from": replayed_from,
        "cards": cards,
        "recipes": provenance.recipes(found),
        "questions": answered(found, of_cells, findings),
        "parts": PARTS_OF_EPOCH.values(),
        "epochs_of": where.epochs(of_cells),
        "timelines_of": where.timelines(of_cells, runs),
        "tables": {name: tables_of(PARTS[name], found, of_cells) for name in beside_questions},
        "topology": files.read_text(topology) if topology.exists() else "",
        "config": (Path(replayed_from or "results") / stored.CONFIG).as_posix(),
        "cells": cells.pages(found, of_cells, runs, logs),
        "data": {
            path.stem: cells.download(path)
            for path in tables
            # Those of cells have a folder of their own.
            if path.read_bytes().count(b"\n") > 1 and (measured or path.parent.name == "tables")
        },
        "figures": dict.fromkeys(FIGURES, "")
        | {name: page.inline_svg(drawn / f"{name}.svg") for name in figures},
    }
    pages = ("report.html", "answers.md")
    texts = {name: page.render(page.REPORT / f"{name}.j2", **values) for name in pages}
    for form, points in stored.read_config(page.REPORT / "forms.yaml").items():
        texts[f"answers-{form}.md"] = page.arranged(texts["answers.md"], points)
    for name, text in texts.items():
        files.write_text(results / name, text)
    print(overview.headline(found, of_cells, cards))
