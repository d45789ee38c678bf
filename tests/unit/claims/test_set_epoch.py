"""Claims on question 5: orders, shards and accuracy with and without set_epoch."""

from functools import partial

import pytest

from examples import synchronization_claims
from examples import synchronization_records as made
from scaling.core.statistics import paired_interval


@pytest.fixture
def claims(tmp_path):
    """A function that makes the claims of a document, by id."""
    return partial(synchronization_claims.make, tmp_path)


def accuracies(document, pairs):
    """Test accuracies (with, without) of each seed, of rank 0."""
    trainings = [one for one in document["trainings"] if one["buffers"] == "broadcast"]
    for one in trainings:
        one["ranks"][0]["test_accuracy"] = pairs[one["seed"]][0 if one["set_epoch"] else 1]
    return document


def test_orders_that_come_again_only_without_set_epoch(claims):
    claim = claims(made.document())["Q5-repeats"]
    assert "one and the same order in all 3 epochs" in claim.sentence
    figures = claim.evidence[0].figures
    # Two ranks, three epochs: of three seeds trained and one drawn alone, either way.
    assert (figures["orders_with"], figures["different_with"]) == (24, 24)
    assert (figures["orders_without"], figures["different_without"]) == (24, 8)


@pytest.mark.parametrize(("index", "told"), [(0, False), (1, True)])
def test_orders_that_do_not_follow_set_epoch_refute(claims, index, told):
    document = made.document()
    document["trainings"][index]["orders"] = made.orders(told)
    claim = claims(document)["Q5-repeats"]
    assert claim.verdict == "refuted"
    assert "does not follow set_epoch" in claim.sentence


@pytest.mark.parametrize("change", [{"unseen": 3}, {"repeated": 2, "overlap": 2}])
def test_shards_that_overlap_or_leave_images_out_refute(claims, change):
    document = made.document()
    document["trainings"][0]["orders"] = made.orders(True, **change)
    claim = claims(document)["Q5-shards"]
    assert claim.verdict == "refuted" and "not disjoint" in claim.sentence


def test_a_repeat_that_makes_shares_equal_is_no_overlap(claims):
    document = made.document()
    document["trainings"][0]["orders"] = made.orders(True, repeated=1, overlap=1)
    claim = claims(document)["Q5-shards"]
    assert claim.verdict == "supported"
    assert "up to 1 images drawn twice" in claim.sentence


@pytest.mark.parametrize(
    ("pairs", "verdict", "words"),
    [
        # Differences of -10, -11 and -12 points: mean -11, and t(2) · 1 / sqrt(3) = 2.48.
        ([(0.7, 0.6), (0.71, 0.6), (0.72, 0.6)], "supported", "−13.48 to −8.52"),
        ([(0.6, 0.7), (0.6, 0.71), (0.6, 0.72)], "refuted", "it gains"),
        ([(0.6, 0.7), (0.71, 0.6), (0.6, 0.61)], "undecided", "cannot be told"),
    ],
)
def test_accuracy_is_judged_by_the_interval_of_the_paired_differences(
    claims, pairs, verdict, words
):
    claim = claims(accuracies(made.document(), pairs))["Q5-accuracy"]
    assert claim.verdict == verdict
    assert words in claim.sentence


def test_a_seed_that_diverged_leaves_accuracy_undecided(claims):
    document = accuracies(made.document(), [(0.7, 0.6), (0.71, 0.6), (0.72, 0.6)])
    document["trainings"][2]["epochs"][-1]["train_loss"] = None
    claim = claims(document)["Q5-accuracy"]
    assert claim.verdict == "undecided" and "1 training diverged" in claim.sentence


def test_two_seeds_leave_accuracy_undecided(claims):
    document = made.document()
    document["trainings"] = [one for one in document["trainings"] if one["seed"] < 2]
    assert "no 3 seeds" in claims(document)["Q5-accuracy"].sentence


def test_a_random_sampler_that_repeats_itself_refutes(claims):
    document = made.document()
    document["permutations"][-1]["orders"] = made.orders(False, ranks=1)
    claim = claims(document)["Q5-data-parallel"]
    assert claim.verdict == "refuted" and "1 of 3 orders are new" in claim.sentence


def test_the_interval_of_paired_differences_is_students():
    # Differences 1, 2, 3: mean 2, s = 1; t(2; 0.975) = 4.3027 and 4.3027 / sqrt(3) = 2.4841.
    assert paired_interval([0, 5, 7], [1, 7, 10]) == (
        pytest.approx(2 - 2.4841, abs=1e-4),
        pytest.approx(2 + 2.4841, abs=1e-4),
    )
    assert paired_interval([1, 2], [2, 3]) == (1.0, 1.0)
