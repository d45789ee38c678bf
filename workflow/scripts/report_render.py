"""Render the report of one study: its tables and figures in one self-contained HTML page."""

import argparse
from pathlib import Path

from scaling.claims import claim
from scaling.core import files
from scaling.core.errors import run_script
from scaling.report import report
from scaling.report.page import Figures
from scaling.tables import schema


def main(argv: list[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--study", required=True, help="name of the study")
    add("--results", type=Path, required=True, help="folder with its tables/ and figures/")
    add("--manifest", type=Path, required=True, help="the dataset's manifest.json")
    add("--runs", type=Path, required=True, help="folder of the run records")
    add("--template", type=Path, required=True, help="report.html.j2")
    add("--partial", action="store_true", help="accept missing cells, and say so at the top")
    add(
        "--side-by-side",
        action="store_true",
        help="say at the top that runs may have shared one machine, so that times say little",
    )
    add("--replayed-from", help="the stored study that the tables were made from, to be said so")
    add("--output", type=Path, required=True, help="the HTML file to write")
    arguments = parser.parse_args(argv)
    shared = arguments.results / "tables"
    own = shared / arguments.study
    page = report.render(
        schema.read_study(arguments.study, own, shared, arguments.manifest),
        claim.read(shared / "claims.json"),
        Figures(arguments.results / "figures" / arguments.study),
        arguments.template,
        runs=arguments.runs,
        data=[*sorted(own.glob("*.csv")), *sorted(shared.glob("*.csv"))],
        partial_report=arguments.partial,
        side_by_side=arguments.side_by_side,
        replayed_from=arguments.replayed_from,
    )
    files.write_text(arguments.output, page)


if __name__ == "__main__":
    run_script(main)
