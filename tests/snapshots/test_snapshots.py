"""Stored studies yield what they did: tables, claims and the texts of the page's tables."""

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
    for path in results.glob("report.html"):
        page = Page(path.read_text(encoding="utf-8"))
        assert page.visible_words <= 1500 and page.words <= 8000, (page.visible_words, page.words)


def test_the_report_in_the_repository_is_that_of_its_study():
    report = snapshots.ROOT / "docs/h200x2.html"
    snapshot = snapshots.SNAPSHOTS / "expected/h200x2/report.txt"
    assert snapshots.of_page(report) == snapshot.read_text(encoding="utf-8"), "make example"
    assert report.stat().st_size <= 2_000_000
