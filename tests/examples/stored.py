"""Stored studies as the tables that their snapshots hold, and pages made of these."""

import shutil
from pathlib import Path

import report_render
from examples.page import Page
from scaling.tables import schema
from scaling.tables.schema import StudyTables

ROOT = Path(__file__).parents[2]
EXPECTED = ROOT / "tests/snapshots/expected"
FLAGSHIP = "h100x2"


def folder_of(name: str) -> Path:
    """The folder with a study's configuration and records."""
    folder = ROOT / "studies" / name
    return folder if folder.exists() else ROOT / "tests/snapshots/studies" / name


def study(name: str = FLAGSHIP) -> StudyTables:
    """All tables of a study; of one with more than 1,000 rows the snapshot has every 25th."""
    tables, manifest = EXPECTED / name / "tables", folder_of(name) / "manifest.json"
    return schema.read_study(name, tables.rglob("*.csv"), tables / "topology.txt", manifest)


def lay_out(folder: Path, name: str = FLAGSHIP) -> None:
    """Tables and claims, as the pipeline leaves them in `folder`."""
    shutil.copytree(EXPECTED / name / "tables", folder / "tables")


def arguments(folder: Path, name: str = FLAGSHIP, *more: str) -> list[str]:
    return [
        *("--study", name),
        *("--results", str(folder)),
        *("--manifest", str(folder_of(name) / "manifest.json")),
        *("--runs", str(folder_of(name) / "runs")),
        *("--template", str(ROOT / "report/report.html.j2")),
        *("--output", str(folder / "report.html")),
        *("--answers", str(folder / "answers.md")),
        *("--topology", str(folder / "tables/topology.txt")),
        *("--tables", *map(str, sorted((folder / "tables").rglob("*.csv")))),
        *more,
    ]


def render(folder: Path, name: str = FLAGSHIP, *more: str) -> Page:
    """The whole page by the script, without figures, from what `lay_out` left in `folder`."""
    report_render.main(arguments(folder, name, *more))
    return Page((folder / "report.html").read_text(encoding="utf-8"))
