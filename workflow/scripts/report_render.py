"""Render the report of one study: one self-contained HTML page, and its answers as Markdown."""

from pathlib import Path

from scaling.claims import claim
from scaling.core import command_line, files
from scaling.figures.registry import STUDY_FIGURES
from scaling.report import frames, overview, page, report
from scaling.tables import schema


@command_line.script
def main(
    study: str,
    results: Path,
    manifest: Path,
    runs: Path,
    template: Path,
    output: Path,
    answers: Path,
    partial: bool = False,
    side_by_side: bool = False,
    replayed_from: str | None = None,
) -> None:
    """Write page and answers of the tables, figures and claims below `results`, records in `runs`.

    `partial` accepts missing cells; `side_by_side` and `replayed_from` are said at the top.
    """
    shared = results / "tables"
    own, figures = shared / study, results / "figures" / study
    tables = schema.read_study(study, own, shared, manifest)
    render = report.renderer(
        tables,
        claim.read(shared / "claims.json"),
        {name: page.inline_svg(figures / f"{name}.svg") for name in STUDY_FIGURES},
        runs=runs,
        data=[*sorted(own.glob("*.csv")), *sorted(shared.glob("*.csv"))],
        partial_report=partial,
        side_by_side=side_by_side,
        replayed_from=replayed_from,
    )
    for name, target in ((template, output), (template.with_name("answers.md.j2"), answers)):
        files.write_text(target, render(name))
    print(overview.headline(tables, frames.cells(tables)))
