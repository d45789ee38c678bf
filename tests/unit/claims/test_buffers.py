"""Claims on question 7: parameters and batch norm's statistics on each rank, and what they cost."""

from functools import partial

import pytest

from examples import synchronization_claims
from examples import synchronization_records as made


@pytest.fixture
def claims(tmp_path):
    """A function that makes the claims of a document, by id."""
    return partial(synchronization_claims.make, tmp_path)


def test_parameters_that_differ_between_ranks_refute(claims):
    document = made.document()
    document["trainings"][-1] = made.training("local", parameters=("p", "q"))
    claim = claims(document)["Q7-parameters"]
    assert claim.verdict == "refuted" and "differ with buffers local" in claim.sentence


def test_equal_parameters_of_two_trainings_are_told_only_where_they_are(claims):
    assert "end with the same parameters" in claims(made.document())["Q7-parameters"].sentence
    document = made.document()
    document["trainings"][-1] = made.training("local", parameters=("q", "q"))
    claim = claims(document)["Q7-parameters"]
    assert claim.verdict == "supported" and "end with the same" not in claim.sentence


def test_statistics_that_agree_refute_that_they_drift(claims):
    claim = claims(made.document())["Q7-statistics"]
    assert "up to 2.0 %" in claim.sentence and "up to 1.0 %" in claim.sentence
    document = made.document()
    document["trainings"][0]["ranks"][1]["buffers_sha256"] = "b0"
    assert claims(document)["Q7-statistics"].verdict == "refuted"


def test_a_training_that_diverged_leaves_the_drift_undecided(claims):
    document = made.document(on_gpus=True)
    for one in document["trainings"]:
        one["drift"] = dict.fromkeys(one["drift"])
    found = claims(document)
    for id in ("Q7-statistics", "Q7-sync-statistics"):
        assert found[id].verdict == "undecided" and "diverged" in found[id].sentence


def test_sync_batch_norm_with_different_statistics_refutes(claims):
    document = made.document(on_gpus=True)
    document["trainings"][-1] = made.training("sync_batch_norm")
    assert claims(document)["Q7-sync-statistics"].verdict == "refuted"


def test_ranks_of_equal_accuracy_refute_that_it_matters_which_is_evaluated(claims):
    document = made.document()
    for one in document["trainings"]:
        one["ranks"][1]["test_accuracy"] = 0.6
    claim = claims(document)["Q7-evaluation"]
    assert claim.verdict == "refuted" and "60.00 to 60.00 %" in claim.sentence


def timed(**seconds):
    """The document whose epochs on batches in memory took so long with each kind of buffers."""
    rows = [row for kind, times in seconds.items() for row in made.buffer_seconds(kind, times)]
    return made.document(on_gpus=True, buffer_seconds=rows)


@pytest.mark.parametrize(
    ("seconds", "verdict", "words"),
    [
        ((2.0, 2.1), "supported", "takes 2.26 s (2.20–2.31), against 1.16 s (1.10–1.21)"),
        ((0.5, 0.6), "refuted", "does not cost time: an epoch on batches in memory takes 0.605 s"),
        ((1.1, 2.0), "undecided", "cannot be told from noise"),
        ((2.0, 2.1, 2.2), "undecided", "cannot be said"),
    ],
)
def test_seconds_are_judged_by_their_ranges_over_equally_many_epochs(
    claims, seconds, verdict, words
):
    document = timed(broadcast=(1.0, 1.1), local=(1.0, 1.1), sync_batch_norm=seconds)
    claim = claims(document)["Q7-sync-seconds"]
    assert claim.verdict == verdict and words in claim.sentence


def test_one_epoch_has_no_range_to_judge_by(claims):
    document = timed(broadcast=(1.0,), local=(1.0,), sync_batch_norm=(5.0,))
    assert claims(document)["Q7-sync-seconds"].verdict == "undecided"


def test_epochs_that_were_not_timed_without_loading_leave_the_cost_of_buffers_open(claims):
    found = claims(made.document(on_gpus=True, buffer_seconds=[]))
    for id, what in (("Q7-broadcast", "broadcasting buffers"), ("Q7-sync", "SyncBatchNorm")):
        claim = found[f"{id}-seconds"]
        assert claim.verdict == "undecided"
        assert claim.sentence == (
            f"Whether {what} costs time cannot be said: no epochs without loading were timed, "
            "equally many with both."
        )
