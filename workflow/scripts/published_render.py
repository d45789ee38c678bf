"""Render the page of published studies: what they printed, what follows, and what is wrong."""

import argparse
from pathlib import Path

from scaling.audit import derive
from scaling.core import files
from scaling.core.errors import run_script
from scaling.published import study as published
from scaling.report import page
from scaling.report import published as report_published


def main(argv: list[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--folders", type=Path, nargs="+", required=True, help="folders with a timings.csv"
    )
    parser.add_argument(
        "--tables", type=Path, required=True, help="folder with a folder of tables for each study"
    )
    parser.add_argument("--figure", type=Path, required=True, help="comparison of them, SVG")
    parser.add_argument("--template", type=Path, required=True, help="published.html.j2")
    parser.add_argument("--output", type=Path, required=True, help="the HTML file to write")
    args = parser.parse_args(argv)
    studies = [
        report_published.section(derive.read(study, args.tables / name), str(folder))
        for name, (folder, study) in published.by_name(args.folders).items()
    ]
    html = page.render(
        args.template,
        title="Published studies, replayed and audited",
        context=report_published.context(studies),
        figure=page.inline_svg(args.figure),
    )
    files.write_text(args.output, html)


if __name__ == "__main__":
    run_script(main)
