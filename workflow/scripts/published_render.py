"""Render the page of published studies: what they printed, what follows, and what is wrong."""

from pathlib import Path

from scaling.audit import derive
from scaling.core import command_line, files
from scaling.published import study as published
from scaling.report import page
from scaling.report import published as report_published


@command_line.script
def main(
    folders: tuple[Path, ...], tables: Path, figure: Path, template: Path, output: Path
) -> None:
    """Write the page of the studies in `folders`; `tables` has a folder of tables for each."""
    studies = [
        report_published.section(derive.read(study, tables / name), str(folder))
        for name, (folder, study) in published.by_name(folders).items()
    ]
    html = page.render(
        template,
        title="Published studies, replayed and audited",
        context=report_published.context(studies),
        figure=page.inline_svg(figure),
    )
    files.write_text(output, html)
