"""Stored studies yield what they did: tables, claims, figures and texts of the page's tables."""

import pytest

import snapshots
from examples.page import Page


@pytest.fixture(scope="module", autouse=True)
def copy():
    with snapshots.project_copy() as folder:
        yield folder


@pytest.mark.parametrize("study", snapshots.STUDIES)
def test_a_stored_study_yields_what_it_did(study):
    results = snapshots.make(study)
    assert snapshots.compare(study, snapshots.texts(study, results)) == []
    for path in results.glob("answers.md"):
        assert len(path.read_text(encoding="utf-8").split()) <= 2000
    for path in results.glob("report.html"):
        page = Page(path.read_text(encoding="utf-8"))
        assert page.contradictions() == []
        assert page.visible_words <= 1500 and page.words <= 8000, (page.visible_words, page.words)


def test_snapshots_are_of_stored_studies_alone():
    assert {path.name for path in snapshots.SNAPSHOTS.glob("expected/*")} == set(snapshots.STUDIES)


@pytest.fixture
def found():
    """The snapshot of a study, as if its replay yielded that."""
    folder = snapshots.SNAPSHOTS / "expected/cpu"
    paths = sorted(folder.rglob("*.*"))
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in paths}


def test_a_table_that_is_gone_or_new_is_a_difference(found):
    assert snapshots.compare("cpu", found) == []
    found["tables/of_late.csv"] = found.pop("tables/peaks.csv")
    gone, new = "cpu/tables/peaks.csv is gone", "cpu/tables/of_late.csv is new"
    assert snapshots.compare("cpu", found) == [gone, new]


@pytest.mark.parametrize(
    ("name", "old", "new", "lines"),
    [
        (
            "tables/peaks.csv",
            ",unit,",
            ",of_late,",
            ["column unit is gone", "column of_late is new"],
        ),
        (
            "tables/claims.json",
            "Q1-faster-plain",
            "Q1-of-late",
            [".claims.Q1-faster-plain is gone", ".claims.Q1-of-late is new"],
        ),
        ("tables/claims.json", '"kind"', '"type"', ["kind is gone", "type is new"]),
        ("figures.txt", "/speedup.svg", "/of_late.svg", ["/speedup.svg", "/of_late.svg"]),
    ],
)
def test_a_column_claim_key_or_figure_that_is_gone_or_new_is_a_difference(
    found, name, old, new, lines
):
    assert old in found[name]
    found[name] = found[name].replace(old, new, 1)
    reported = snapshots.compare("cpu", found)
    assert len(reported) == 2
    for line, end in zip(reported, lines, strict=True):
        assert line.startswith(f"cpu/{name}: ") and line.endswith(end)


def test_the_report_in_the_repository_is_that_of_its_study():
    report = snapshots.ROOT / "docs/h100x2.html"
    snapshot = snapshots.SNAPSHOTS / "expected/h100x2/report.txt"
    assert snapshots.of_page(report) == snapshot.read_text(encoding="utf-8"), "make example"
    assert report.stat().st_size <= 2_000_000
