"""Two recipes side by side: when they agree, when they differ, when nothing can be said."""

import math

import pandas as pd
import pytest

from scaling.core.statistics import welch_interval
from scaling.tables import schema
from scaling.tables.accuracy import AGREE, DIFFER, UNDECIDED, compare_recipes


def run(recipe, seed, test_accuracy, epochs=5, status="ok", batch_size=128):
    """accuracy.csv of one run that ends with this test accuracy, after an epoch that was worse."""
    cell = ["example", recipe, "ddp", 1, batch_size, seed]
    return [
        [*cell, 1, 2.0, 0.2, math.nan, math.nan, status],
        [*cell, epochs, 2 - test_accuracy, test_accuracy + 0.1, 0.9, test_accuracy, status],
    ]


def table(*runs):
    return pd.DataFrame([row for rows in runs for row in rows], columns=schema.columns("accuracy"))


def recipes(course, tuned, **options):
    """One run of each recipe for each test accuracy."""
    return table(
        *(run("course", seed, value, **options) for seed, value in enumerate(course)),
        *(run("tuned", seed, value, **options) for seed, value in enumerate(tuned)),
    )


def accuracy_row(accuracy):
    pairs = compare_recipes(accuracy)
    return next(pairs[pairs["quantity"] == "test_accuracy"].itertuples())


def test_equal_variances_give_the_interval_of_the_textbook():
    # Both variances 4e-4 over 3 seeds: standard error sqrt(8e-4 / 3) = 0.016330, 4 degrees of
    # freedom, t = 2.77645: half the width is 0.045339.
    low, high = welch_interval([0.70, 0.72, 0.74], [0.73, 0.75, 0.77])
    assert (low, high) == pytest.approx((0.03 - 0.045339, 0.03 + 0.045339), abs=1e-6)


def test_a_sample_without_spread_adds_no_degrees_of_freedom():
    # Only the first varies: standard error 0.02 / sqrt(3) = 0.011547 with 2 degrees of freedom,
    # t = 4.30265. Pooled variances would have 4, and an interval of ± 0.032 that misses 0.
    low, high = welch_interval([0.70, 0.72, 0.74], [0.76, 0.76, 0.76])
    assert (low, high) == pytest.approx((0.04 - 0.049683, 0.04 + 0.049683), abs=1e-6)


def test_overlapping_seeds_agree_and_the_width_of_the_doubt_is_stated():
    row = accuracy_row(recipes([0.70, 0.72, 0.74], [0.73, 0.75, 0.77]))
    assert (row.first, row.second, row.verdict) == ("course", "tuned", AGREE)
    assert (row.first_mean, row.first_std) == pytest.approx((0.72, 0.02))
    assert (row.second_mean, row.second_std) == pytest.approx((0.75, 0.02))
    assert row.difference == pytest.approx(0.03)
    assert (row.low, row.high) == pytest.approx((-0.015339, 0.075339), abs=1e-6)


def test_recipes_far_apart_differ_in_every_quantity():
    pairs = compare_recipes(recipes([0.70, 0.72, 0.74], [0.80, 0.82, 0.84]))
    assert dict(zip(pairs["quantity"], pairs["verdict"], strict=True)) == {
        "train_loss": DIFFER,
        "train_accuracy": DIFFER,
        "test_accuracy": DIFFER,
    }
    differences = pairs.set_index("quantity")["difference"]
    assert differences["train_loss"] == pytest.approx(-0.10)
    assert differences["train_accuracy"] == pytest.approx(0.10)


def test_one_seed_leaves_it_undecided_but_gives_the_difference():
    row = accuracy_row(recipes([0.70], [0.73, 0.75]))
    assert (row.verdict, row.reason) == (UNDECIDED, "fewer than 2 seeds")
    assert row.difference == pytest.approx(0.04)
    assert math.isnan(row.low) and math.isnan(row.first_std)


def test_seeds_that_are_all_alike_show_no_noise_to_judge_by():
    row = accuracy_row(recipes([0.1, 0.1], [0.1, 0.1]))
    assert (row.verdict, row.reason) == (UNDECIDED, "no seed differs from another")


def test_runs_of_different_lengths_are_not_compared():
    accuracy = table(
        *(run("course", seed, 0.7 + seed / 50, epochs=5) for seed in range(2)),
        *(run("tuned", seed, 0.7 + seed / 50, epochs=8) for seed in range(2)),
    )
    row = accuracy_row(accuracy)
    assert (row.verdict, row.reason) == (UNDECIDED, "runs of 5 and 8 epochs")
    assert (row.first_epochs, row.second_epochs) == ([5], [8])
    assert math.isnan(row.difference)


def test_the_seeds_that_survived_do_not_speak_for_a_recipe_that_diverged():
    accuracy = table(
        *(run("course", seed, 0.7 + seed / 50) for seed in range(3)),
        *(run("tuned", seed, 0.7 + seed / 50) for seed in range(2)),
        run("tuned", 2, math.nan, status="diverged"),
    )
    row = accuracy_row(accuracy)
    assert (row.verdict, row.reason) == (UNDECIDED, "tuned: 1 of 3 seeds diverged")
    assert math.isnan(row.difference)


def test_a_recipe_without_figures_says_why():
    accuracy = table(
        run("course", 0, 0.7),
        [["example", "tuned", "ddp", 1, 128, 0, *[math.nan] * 5, "oom"]],
    )
    row = accuracy_row(accuracy)
    assert (row.verdict, row.reason) == (UNDECIDED, "tuned: no figures (oom)")


def test_only_equal_cells_are_compared():
    accuracy = table(run("course", 0, 0.7, batch_size=128), run("tuned", 0, 0.7, batch_size=512))
    assert compare_recipes(accuracy).empty
