"""Claims on questions 5 to 7 together: what no record, a CPU and GPUs decide."""

from functools import partial

import pandas as pd
import pytest

from examples import synchronization_claims
from examples import synchronization_records as made


@pytest.fixture
def claims(tmp_path):
    """A function that makes the claims of a document, by id."""
    return partial(synchronization_claims.make, tmp_path)


def test_without_a_record_every_claim_is_undecided_and_says_what_is_missing(claims):
    found = claims(None)
    assert len(found) == 4 + 6 + 6
    for claim in found.values():
        assert claim.verdict == "undecided", claim
        assert any(word in claim.sentence for word in ("cannot be said", "not recorded", "was not"))


def test_on_a_cpu_only_what_needs_gpus_or_more_seeds_is_undecided(claims):
    found = claims(made.document())
    undecided = {id for id, claim in found.items() if claim.verdict == "undecided"}
    assert undecided == {
        *("Q5-accuracy", "Q6-sync-batch-norm", "Q6-data-parallel"),
        *("Q7-sync-statistics", "Q7-sync-seconds", "Q7-broadcast-seconds"),
    }
    assert "runs on GPUs only" in found["Q6-data-parallel"].sentence
    assert {claim.verdict for claim in found.values()} == {"supported", "undecided"}


def test_on_gpus_everything_that_was_recorded_is_decided(claims):
    found = claims(made.document(on_gpus=True))
    for id in ("Q6-sync-batch-norm", "Q6-data-parallel", "Q7-sync-statistics"):
        assert found[id].verdict == "supported", found[id]


def test_claims_know_numbers_by_the_names_of_their_tables(claims):
    for claim in claims(made.document(on_gpus=True)).values():
        for evidence in claim.evidence:
            assert evidence.file.startswith("tables/") and evidence.test
            assert all(pd.notna(value) for value in evidence.figures.values()), claim.id
