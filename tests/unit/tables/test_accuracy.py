"""Loss and accuracy of runs; large batches beside the reference, two recipes side by side."""

import math

import pandas as pd
import pytest

from examples.records import epoch, record
from scaling.core.grid import Cell
from scaling.tables import schema
from scaling.tables.accuracy import (
    AGREE,
    DIFFER,
    accuracy,
    compare_recipes,
)

CELL = Cell("plain", "ddp", 1, 128, 0)
TEST = {"test_loss": 1.1, "test_accuracy": 0.6}


def of_record(epochs, **more):
    return accuracy([(CELL, record(CELL, epochs, **more))], "measured")


@pytest.mark.parametrize("measured", [2, 5])
def test_epochs_that_were_asked_for_have_a_row_and_the_last_one_the_test_figures(measured):
    """One of warm-up and three measured: others were needed until times settled."""
    losses = [2.0, 1.8, 1.6, 1.4, 1.2, 1.0][: 1 + measured]
    epochs = [epoch(n, 1.0, train_loss=loss) for n, loss in enumerate(losses, start=1)]
    epochs[0]["role"] = "warmup"
    epochs.append(epoch(9, 1.0, role="instrumented", train_loss=9.9))
    table = of_record(epochs, evaluation=TEST)
    assert table.train_loss.tolist() == losses[:4]
    assert table.test_loss.isna().tolist() == [True] * (len(table) - 1) + [False]
    assert (table.iloc[-1].test_loss, table.iloc[-1].test_accuracy) == (1.1, 0.6)


def test_ranks_count_by_the_samples_they_saw():
    epochs = [
        epoch(1, 8.0, rank=0, samples=300, train_loss=1.0, train_accuracy=0.5),
        epoch(1, 8.0, rank=1, samples=100, train_loss=2.0, train_accuracy=0.1),
    ]
    row = of_record(epochs).iloc[0]
    assert row.train_loss == pytest.approx(1.25)  # (300 · 1 + 100 · 2) / 400
    assert row.train_accuracy == pytest.approx(0.4)  # (150 + 10) / 400
    # A rank's loss that was not finite leaves the epoch without one.
    epochs[1]["train_loss"] = None
    assert math.isnan(of_record(epochs).iloc[0].train_loss)


def test_the_accuracy_of_a_diverged_run_is_not_told_but_its_losses_are():
    epochs = [epoch(1, 8.0, train_loss=3.0), epoch(2, 8.0, train_loss=None)]
    table = of_record(epochs, status="diverged", evaluation=TEST)
    assert table.status.tolist() == ["diverged", "diverged"]
    assert table.train_accuracy.isna().all() and table.test_accuracy.isna().all()
    assert table.train_loss.tolist() == [3.0, pytest.approx(math.nan, nan_ok=True)]


def run(recipe, seed, test_accuracy, epochs=5, status="ok"):
    """accuracy.csv of one run that ends with this test accuracy, after an epoch that was worse."""
    cell = ["example", recipe, "ddp", 1, 128, seed]
    return [
        [*cell, 1, 2.0, 0.2, math.nan, math.nan, status],
        [*cell, epochs, 2 - test_accuracy, test_accuracy + 0.1, 0.9, test_accuracy, status],
    ]


def pairs(plain, tuned, *more, epochs=5):
    """The comparisons of two recipes, from one run for each of these test accuracies."""
    runs = [run("plain", seed, value) for seed, value in enumerate(plain)]
    runs += [run("tuned", seed, value, epochs) for seed, value in enumerate(tuned)]
    rows = [row for rows in [*runs, *more] for row in rows]
    table = compare_recipes(pd.DataFrame(rows, columns=schema.columns("accuracy")))
    return list(table.itertuples())


def test_overlapping_seeds_agree_and_recipes_far_apart_differ():
    # Both variances 4e-4 over 3 seeds: standard error sqrt(8e-4 / 3) = 0.016330, 4 degrees of
    # freedom, t = 2.77645.
    (row,) = pairs([0.70, 0.72, 0.74], [0.73, 0.75, 0.77])
    assert (row.first, row.second, row.verdict) == ("plain", "tuned", AGREE)
    assert row.difference == pytest.approx(0.03)
    assert (row.low, row.high) == pytest.approx((-0.015339, 0.075339), abs=1e-6)
    (row,) = pairs([0.70, 0.72, 0.74], [0.80, 0.82, 0.84])
    assert row.verdict == DIFFER and row.difference == pytest.approx(0.10)


LACKING = [["example", "tuned", "ddp", 1, 128, 0, *[math.nan] * 5, "oom"]]


def test_what_shows_no_noise_to_judge_by_is_not_compared():
    assert pairs([0.70], [0.73, 0.75]) == pairs([0.1, 0.1], [0.1, 0.1]) == []
    assert pairs([0.70, 0.72], [0.70, 0.72], epochs=8) == pairs([0.7], [], LACKING) == []
    # The seeds that survived do not speak for the recipe.
    assert pairs([0.70, 0.72], [0.70, 0.72], run("tuned", 2, math.nan, status="diverged")) == []
