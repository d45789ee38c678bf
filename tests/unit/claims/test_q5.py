"""Question 5: orders and accuracy with and without set_epoch."""

import pytest

from examples import synchronization_records as made
from examples.synchronization_claims import answers


def test_orders_that_come_again_only_without_set_epoch():
    said = answers(made.document())[0]
    assert said.claims[0].verdict == "supported" and said.text.endswith("all 3 epochs differ.")
    for index, told in ((0, False), (1, True)):
        document = made.document()
        document["trainings"][index]["orders"] = made.orders(told)
        said = answers(document)[0]
        assert said.claims[0].verdict == "refuted" and said.text == said.claims[0].sentence


def accuracy(pairs, change=None):
    """The claim on test accuracies (with, without) of each seed, of rank 0."""
    document = made.document()
    for one in document["trainings"]:
        if one["buffers"] == "broadcast":
            one["ranks"][0]["test_accuracy"] = pairs[one["seed"]][0 if one["set_epoch"] else 1]
    if change:
        change(document["trainings"])
    return answers(document)[0].claims[1]


@pytest.mark.parametrize(
    ("pairs", "verdict", "words"),
    [
        # Differences of -10, -11 and -12 points: mean -11, and t(2) · 1 / sqrt(3) = 2.48.
        ([(0.7, 0.6), (0.71, 0.6), (0.72, 0.6)], "supported", "−13.48 to −8.52"),
        ([(0.6, 0.7), (0.6, 0.71), (0.6, 0.72)], "refuted", "+8.52 to +13.48"),
        # Mean -8, spread 3.5: of three seeds t(2) · 3.5 / √3 is 8.6 points.
        ([(0.7, 0.6), (0.7, 0.66), (0.7, 0.6)], "unclear", "; more seeds would tell."),
    ],
)
def test_accuracy_is_judged_by_the_interval_of_the_paired_differences(pairs, verdict, words):
    claim = accuracy(pairs)
    assert claim.verdict == verdict and words in claim.sentence


def test_a_seed_that_diverged_and_fewer_than_three_decide_nothing():
    pairs = [(0.7, 0.6), (0.71, 0.6), (0.72, 0.6)]
    diverged = accuracy(pairs, lambda runs: runs[2]["epochs"][-1].update(train_loss=None))
    assert (diverged.verdict, diverged.sentence) == (
        "unclear",
        "1 training diverged; what is left is no fair selection.",
    )
    few = accuracy(pairs, lambda runs: runs.__setitem__(slice(2, 4), []))
    assert few.verdict == "not measured"
