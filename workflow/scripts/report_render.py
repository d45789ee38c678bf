"""Render the report of one study: its tables and figures in one self-contained HTML page."""

import argparse
from pathlib import Path

from scaling.claims import claim
from scaling.core import files
from scaling.core.errors import run_script
from scaling.figures.registry import FIGURES
from scaling.report import report
from scaling.tables import schema


def main(argv: list[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", required=True, help="name of the study")
    parser.add_argument("--tables", type=Path, required=True, help="folder of the study's tables")
    parser.add_argument(
        "--shared-tables",
        type=Path,
        required=True,
        help="folder of accuracy, quantization, interconnect, interconnect_fit and peaks (CSV)",
    )
    parser.add_argument(
        "--figures",
        type=Path,
        required=True,
        help=f"folder of the study's figures (SVG): {', '.join(FIGURES)}",
    )
    parser.add_argument("--manifest", type=Path, required=True, help="the dataset's manifest.json")
    parser.add_argument("--claims", type=Path, required=True, help="the study's claims.json")
    parser.add_argument(
        "--template", type=Path, required=True, help="report.html.j2, beside its sections"
    )
    parser.add_argument(
        "--partial", action="store_true", help="accept missing cells, and say so at the top"
    )
    parser.add_argument(
        "--side-by-side",
        action="store_true",
        help="say at the top that runs may have shared one machine, so that times say little",
    )
    parser.add_argument(
        "--replayed-from", help="the stored study that the tables were made from, to be said so"
    )
    parser.add_argument("--output", type=Path, required=True, help="the HTML file to write")
    arguments = parser.parse_args(argv)
    tables = schema.read_study(
        arguments.study, arguments.tables, arguments.shared_tables, arguments.manifest
    )
    figures = report.read_figures(arguments.figures)
    page = report.render(
        tables,
        claim.read(arguments.claims),
        figures,
        arguments.template,
        partial=arguments.partial,
        side_by_side=arguments.side_by_side,
        replayed_from=arguments.replayed_from,
    )
    files.write_text(arguments.output, page)


if __name__ == "__main__":
    run_script(main)
