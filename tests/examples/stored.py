"""Tables and pages of stored studies, and the folder of a finished study."""

import shutil
from pathlib import Path
from typing import Any

import yaml

import report_render
from examples.page import Page
from scaling.config import stored
from scaling.tables import schema
from scaling.tables.schema import StudyTables

ROOT = Path(__file__).parents[2]
EXPECTED = ROOT / "tests/snapshots/expected"
FLAGSHIP = "h200x2"


def folder_of(name: str) -> Path:
    """Return the folder with a study's configuration and records."""
    folder = ROOT / "studies" / name
    return folder if folder.exists() else ROOT / "tests/snapshots/studies" / name


def study(name: str = FLAGSHIP) -> StudyTables:
    """Return all tables in a study's snapshot. Tables above 1,000 rows have every 25th row only."""
    tables, manifest = EXPECTED / name / "tables", folder_of(name) / "manifest.json"
    return schema.read_study(name, tables.rglob("*.csv"), manifest)


def lay_out(folder: Path, name: str = FLAGSHIP) -> None:
    """Write tables and claims to `folder`, as the pipeline does."""
    shutil.copytree(EXPECTED / name / "tables", folder / "tables")


def render(folder: Path, name: str = FLAGSHIP, **more: object) -> Page:
    """Return the page that the script renders after `lay_out`, without figures."""
    given: dict[str, object] = {
        "study": name,
        "results": folder,
        "manifest": folder_of(name) / "manifest.json",
        "runs": folder_of(name) / "runs",
        "tables": sorted((folder / "tables").rglob("*.csv")),
    }
    report_render.main(**given | more)
    return Page((folder / "report.html").read_text(encoding="utf-8"))


SOURCE = ROOT / "tests/snapshots/studies/cpu"
CONFIG: dict[str, Any] = stored.read(SOURCE)
FILES = sorted(path.as_posix() for path in stored.own_files(SOURCE))
"""Paths of all files of the stored study."""


def lay_out_finished(folder: Path, **changes: Any) -> None:
    """Write results/ and resources/ of `CONFIG` to `folder`, with changed top-level keys."""
    results, dataset = folder / "results", folder / "resources/dataset/digits"
    shutil.copytree(SOURCE, results, dirs_exist_ok=True)
    dataset.mkdir(parents=True, exist_ok=True)
    (results / "manifest.json").rename(dataset / "manifest.json")
    (results / "quantization/seed~0/float32.pt").write_bytes(b"weights")
    (results / "config.yaml").write_text(yaml.safe_dump(CONFIG | changes, sort_keys=False))


def files_in(folder: Path) -> list[str]:
    """Return the sorted paths of all files in `folder`, including hidden ones."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path.relative_to(folder).as_posix() for path in paths)
