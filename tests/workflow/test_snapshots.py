"""Stored studies yield what they did: tables, claims and the texts of the page's tables."""

import pytest

import snapshots

SENTENCES = {
    # From before there were remedies, experiments on ranks, variants and other quantizers.
    "h200x2": ["The study has no runs of remedies."],
    "h200-recipes": ["This study has no Part B: nothing was quantized."],
}
"""What the page says of experiments that a study lacks."""


@pytest.fixture(scope="module", autouse=True)
def copy():
    with snapshots.project_copy() as folder:
        yield folder


@pytest.mark.parametrize("study", snapshots.STUDIES)
def test_a_stored_study_yields_what_it_did(study):
    results = snapshots.make(study)
    assert snapshots.compare(study, snapshots.texts(study, results)) == []
    for sentence in SENTENCES.get(study, []):
        assert sentence in (results / "report.html").read_text()
