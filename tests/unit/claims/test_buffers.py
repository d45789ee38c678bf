"""Question 7: claims on parameters and running statistics of each rank, and what they cost."""

import pytest

from examples import synchronization_records as made
from examples.synchronization_claims import make


def test_parameters_that_differ_between_ranks_refute():
    document = made.document()
    assert make(document)["Q7-parameters"].verdict == "supported"
    document["trainings"][-1] = made.training("local", parameters=("p", "q"))
    claim = make(document)["Q7-parameters"]
    assert claim.verdict == "refuted" and "differ with buffers local" in claim.sentence


def test_a_training_that_diverged_leaves_the_drift_unclear():
    document = made.document(on_gpus=True)
    for one in document["trainings"]:
        one["drift"] = dict.fromkeys(one["drift"])
    assert make(document)["Q7-sync-statistics"].verdict == "unclear"


def test_sync_batch_norm_keeps_statistics_equal_or_not():
    document = made.document(on_gpus=True)
    assert make(document)["Q7-sync-statistics"].verdict == "supported"
    document["trainings"][-1] = made.training("sync_batch_norm")
    assert make(document)["Q7-sync-statistics"].verdict == "refuted"
    assert make(made.document())["Q7-sync-statistics"].verdict == "not measured"


@pytest.mark.parametrize(
    ("seconds", "verdict"),
    [
        ((2.0, 2.1), "supported"),
        ((0.5, 0.6), "refuted"),
        ((1.1, 2.0), "unclear"),
        # One epoch has no range to judge by.
        ((5.0,), "unclear"),
        # Not as many epochs.
        ((2.0, 2.1, 2.2), "not measured"),
    ],
)
def test_seconds_are_judged_by_their_ranges_over_equally_many_epochs(seconds, verdict):
    others = (1.0, 1.1)[: len(seconds)]
    times = {"broadcast": others, "local": others, "sync_batch_norm": seconds}
    rows = [row for kind, own in times.items() for row in made.buffer_seconds(kind, own)]
    found = make(made.document(on_gpus=True, buffer_seconds=rows))
    assert found["Q7-sync-seconds"].verdict == verdict
