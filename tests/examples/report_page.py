"""Rendering the report of made-up tables."""

from pathlib import Path

import pandas as pd

import claims_evaluate
import report_render
from examples import report_tables
from examples.page import Page
from examples.report_tables import STUDY
from scaling.figures.registry import FIGURES

REPORT = Path(__file__).parents[2] / "report"


def arguments(folder: Path, *more: str) -> list[str]:
    return [
        *("--study", STUDY),
        *("--results", str(folder)),
        *("--manifest", str(folder / "manifest.json")),
        *("--runs", str(folder / "runs")),
        *("--template", str(REPORT / "report.html.j2")),
        *("--output", str(folder / "report.html")),
        *("--answers", str(folder / "answers.md")),
        *("--topology", str(folder / "tables/topology.txt")),
        *("--tables", *map(str, sorted((folder / "tables").rglob("*.csv")))),
        *("--figures", *map(str, sorted((folder / "figures" / STUDY).glob("*.svg")))),
        *more,
    ]


def lay_out(folder: Path, tables: dict[str, pd.DataFrame]) -> None:
    """Tables, claims, manifest and figures, as the pipeline leaves them."""
    report_tables.write(folder, tables)
    made = [str(path) for path in sorted((folder / "tables").rglob("*.csv"))]
    claims = folder / "tables" / "claims.json"
    claims_evaluate.main(["--study", STUDY, "--tables", *made, "--output", str(claims)])
    figures = folder / "figures" / STUDY
    figures.mkdir(parents=True)
    for name in FIGURES:
        (figures / f"{name}.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'><g/></svg>")


def render(folder: Path, *more: str) -> Page:
    """The whole page by the script, from what `lay_out` left in `folder`."""
    report_render.main(arguments(folder, *more))
    return Page((folder / "report.html").read_text(encoding="utf-8"))
