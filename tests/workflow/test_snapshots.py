"""Stored studies yield what they did: tables, claims and the texts of the page's tables."""

import pytest

import snapshots


@pytest.fixture(scope="module", autouse=True)
def copy():
    with snapshots.project_copy() as folder:
        yield folder


@pytest.mark.parametrize("study", snapshots.STUDIES)
def test_a_stored_study_yields_what_it_did(study):
    assert snapshots.compare(study, snapshots.texts(study, snapshots.make(study))) == []
