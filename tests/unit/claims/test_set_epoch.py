"""Question 5: claims on orders, shards and accuracy with and without set_epoch."""

import pytest

from examples import synchronization_records as made
from examples.synchronization_claims import make


def accuracies(pairs):
    """The document with test accuracies (with, without) of each seed, of rank 0."""
    document = made.document()
    for one in document["trainings"]:
        if one["buffers"] == "broadcast":
            pair = pairs[one["seed"]]
            one["ranks"][0]["test_accuracy"] = pair[0 if one["set_epoch"] else 1]
    return document


def test_orders_that_come_again_only_without_set_epoch():
    assert make(made.document())["Q5-repeats"].verdict == "supported"
    for index, told in ((0, False), (1, True)):
        document = made.document()
        document["trainings"][index]["orders"] = made.orders(told)
        assert make(document)["Q5-repeats"].verdict == "refuted"


@pytest.mark.parametrize(
    ("pairs", "verdict", "words"),
    [
        # Differences of -10, -11 and -12 points: mean -11, and t(2) · 1 / sqrt(3) = 2.48.
        ([(0.7, 0.6), (0.71, 0.6), (0.72, 0.6)], "supported", "−13.48 to −8.52"),
        ([(0.6, 0.7), (0.6, 0.71), (0.6, 0.72)], "refuted", "+8.52 to +13.48"),
        ([(0.6, 0.7), (0.71, 0.6), (0.6, 0.61)], "unclear", "between 3 seeds: not even 100 more"),
        # Mean -8, spread 4: of six seeds t(5) · 4 / √6 is 4.2 points, of three t(2) · 4 / √3 9.9.
        ([(0.7, 0.6), (0.7, 0.66), (0.7, 0.6)], "unclear", "between 3 seeds: 1 more"),
    ],
)
def test_accuracy_is_judged_by_the_interval_of_the_paired_differences(pairs, verdict, words):
    claim = make(accuracies(pairs))["Q5-accuracy"]
    assert claim.verdict == verdict and words in claim.sentence


def test_a_seed_that_diverged_and_fewer_than_three_decide_nothing():
    document = accuracies([(0.7, 0.6), (0.71, 0.6), (0.72, 0.6)])
    document["trainings"][2]["epochs"][-1]["train_loss"] = None
    assert make(document)["Q5-accuracy"].verdict == "unclear"
    document["trainings"] = [one for one in document["trainings"] if one["seed"] != 1]
    assert make(document)["Q5-accuracy"].verdict == "not measured"
