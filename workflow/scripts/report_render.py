"""Render the report of one study: its tables and figures in one self-contained HTML page."""

from pathlib import Path

from scaling.claims import claim
from scaling.core import command_line, files
from scaling.core.errors import run_script
from scaling.report import report
from scaling.report.page import Figures
from scaling.tables import schema


@command_line.script
def main(
    study: str,
    results: Path,
    manifest: Path,
    runs: Path,
    template: Path,
    output: Path,
    partial: bool = False,
    side_by_side: bool = False,
    replayed_from: str | None = None,
) -> None:
    """Write the page of the tables, figures and claims below `results` and the records in `runs`.

    `partial` accepts missing cells; `side_by_side` and `replayed_from` are said at the top.
    """
    shared = results / "tables"
    own = shared / study
    page = report.render(
        schema.read_study(study, own, shared, manifest),
        claim.read(shared / "claims.json"),
        Figures(results / "figures" / study),
        template,
        runs=runs,
        data=[*sorted(own.glob("*.csv")), *sorted(shared.glob("*.csv"))],
        partial_report=partial,
        side_by_side=side_by_side,
        replayed_from=replayed_from,
    )
    files.write_text(output, page)


if __name__ == "__main__":
    run_script(main)
