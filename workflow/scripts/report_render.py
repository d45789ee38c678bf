"""Render the report of a study: one self-contained HTML page, and its answers as Markdown."""

from pathlib import Path

from scaling.claims import claim
from scaling.core import command_line, files
from scaling.figures import FIGURES
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
    tables: tuple[Path, ...],
    figures: tuple[Path, ...] = (),
    topology: tuple[Path, ...] = (),
    partial: bool = False,
    side_by_side: bool = False,
    replayed_from: str | None = None,
) -> None:
    """Write page and answers from tables, figures, claims (in `results`) and run records.

    `partial` accepts missing cells; the page's top mentions `side_by_side` and `replayed_from`.
    """
    shared = results / "tables"
    found = schema.read_study(study, tables, next(iter(topology), None), manifest)
    drawn = dict.fromkeys(FIGURES, "")
    drawn |= {path.stem: page.inline_svg(path) for path in figures}
    findings = claim.read(shared / "claims.json")
    values = report.values(found, findings, drawn, runs, tables, partial, replayed_from)
    for name, target in ((template, output), (template.with_name("answers.md.j2"), answers)):
        files.write_text(target, page.render(name, side_by_side=side_by_side, **values))
    print(overview.headline(found, frames.cells(found)))
