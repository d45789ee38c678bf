"""Tables, claims, figures and page texts of stored studies equal their snapshots."""

import json
import re

import pytest

import snapshots
from examples.page import Page


@pytest.fixture(scope="module", autouse=True)
def copy():
    with snapshots.project_copy() as folder:
        yield folder


@pytest.mark.parametrize("study", snapshots.STUDIES)
def test_stored_study_equals_its_snapshot(study):
    results = snapshots.make(study)
    assert snapshots.compare(study, snapshots.texts(results)) == []
    for path in results.glob("answers.md"):
        text = path.read_text(encoding="utf-8")
        assert len(text.split()) <= 2000 and "&#39;" not in text
        assert all((results / figure).exists() for figure in re.findall(r"!\[.*\]\((.*)\)", text))
    for path in (results / "tables").glob("claims.json"):
        answers = json.loads(path.read_text(encoding="utf-8"))["answers"].values()
        for answer in (answer.replace(" %", "%") for answer in answers):
            sentences = re.split(r"(?<=[.!?])\s+(?=[A-Z])", answer)
            assert len(answer.split()) <= 70 and max(len(one.split()) for one in sentences) <= 30
    for path in results.glob("report.html"):
        page = Page(path.read_text(encoding="utf-8"))
        assert page.contradictions() == []
        assert len(page.text.split()) <= 8000


def test_snapshots_are_of_stored_studies_alone():
    assert {path.name for path in snapshots.SNAPSHOTS.glob("expected/*")} == set(snapshots.STUDIES)


def test_report_in_docs_is_that_of_its_study():
    report = snapshots.ROOT / "docs/h200x2.html"
    snapshot = (snapshots.SNAPSHOTS / "expected/h200x2/report.txt").read_text(encoding="utf-8")
    page = Page(report.read_text(encoding="utf-8"))
    assert snapshots.of_tables(page) == snapshot, "make example"
    assert report.stat().st_size <= 2_000_000
