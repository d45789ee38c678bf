"""Tables of remedies from records, and the time to a fixed accuracy."""

import math

import pandas as pd
import pytest
from convergence_records import record, run, seeds, study

from scaling import timing
from scaling.convergence import run_tables
from scaling.convergence.best import best
from scaling.convergence.remedy_table import remedies
from scaling.convergence.time_to_accuracy import time_to_accuracy


def timed(*cells):
    """timing.csv of (gpus, batch_size, epoch_seconds) cells."""
    rows = [
        {"recipe": "tuned", "strategy": "ddp", "gpus": g, "batch_size": b, "epoch_seconds": s}
        for g, b, s in cells
    ]
    return pd.DataFrame(rows, columns=timing.COLUMNS)


def row(table, remedy, global_batch):
    found = table[(table["remedy"] == remedy) & (table["global_batch"] == global_batch)]
    return next(found.itertuples())


def test_a_row_of_every_run_has_what_its_last_epoch_gave():
    runs = run_tables.runs(study())
    assert len(runs) == 12 * 3 + 3
    found = row(runs, "naive", 8192)
    assert (found.gpus, found.batch_size, found.options) == (4, 2048, "scaling linear")
    assert (found.rule_rate, found.epochs, found.updates) == (pytest.approx(6.4), 2, 10)
    assert (found.test_accuracy, found.diverged) == (pytest.approx(0.1), "at chance")
    epochs = run_tables.epochs(study())
    assert len(epochs) == 2 * len(runs)


def test_the_reference_is_plain_sgd_at_the_reference_batch_with_the_widest_sweep():
    runs = run_tables.runs(study())
    reference = runs[runs["reference"]]
    assert set(zip(reference["remedy"], reference["global_batch"], strict=True)) == {
        ("linear", 128)
    }
    # Something else than the scaling makes it no plain SGD.
    warmed = record("warm", 128, seeds(0.7), scaling="linear", warmup_epochs=1)
    assert not run_tables.runs([warmed])["reference"].any()


def test_a_loss_curve_ends_with_the_last_update():
    curves = run_tables.curves([record("none", 128, seeds(0.7, 0.8))])
    assert curves["update"].tolist() == [4, 8, 10]
    assert curves["train_loss"].tolist() == [2.5, 2.0, 1.5]
    assert set(curves["seed"]) == {0}


def test_remedies_are_compared_with_the_reference_seeds_against_seeds():
    table = remedies(run_tables.runs(study()))
    found = row(table, "linear", 512)
    assert (found.seeds, found.diverged_seeds) == (3, 0)
    assert (found.test_accuracy, found.test_accuracy_min) == pytest.approx((0.61, 0.60))
    # Both have variance 1e-4: 2.77645 · 0.01 · sqrt(2 / 3) is half the interval.
    assert found.test_difference == pytest.approx(-0.10)
    assert (found.test_low, found.test_high) == pytest.approx((-0.12267, -0.07733), abs=1e-5)
    assert found.test_verdict == "differ"
    same = row(table, "none", 128)
    assert same.test_verdict == "agree within noise"
    assert row(table, "linear", 128).test_verdict == ""


def test_a_swept_out_rate_is_no_part_of_the_means_but_the_rules_own_is_kept():
    runs = [run(0.3), run(0.5, factor=0.25), run(0.52, seed=1, factor=0.25)]
    runs[0]["chosen"] = False
    found = row(
        remedies(run_tables.runs([record("linear", 512, runs, scaling="linear")])), *("linear", 512)
    )
    assert found.test_accuracy == pytest.approx(0.51)
    assert found.rule_test_accuracy == pytest.approx(0.3)
    assert found.factor == 0.25


def test_seeds_at_chance_count_and_a_loss_that_is_not_finite_leaves_it_undecided():
    records = [*study(), record("fast", 512, seeds(0.5, 0.6, None))]
    table = remedies(run_tables.runs(records))
    naive = row(table, "naive", 8192)
    assert (naive.diverged_seeds, naive.test_verdict) == (3, "differ")
    fast = row(table, "fast", 512)
    assert (fast.diverged_seeds, fast.test_verdict) == (1, "undecided")
    assert fast.test_accuracy == pytest.approx(0.55) and math.isnan(fast.test_difference)


def test_a_remedy_that_ended_early_is_not_the_best_and_hides_no_other():
    ended = [one | {"epochs": one["epochs"][:1], "updates": 5} for one in seeds(None, None, None)]
    without, beside = (
        remedies(run_tables.runs(records))
        for records in (study(), [*study(), record("wild", 8192, ended)])
    )
    for batch in (512, 8192):
        assert best(beside, batch).remedy == best(without, batch).remedy != "wild"


def test_a_batch_that_does_not_fit_keeps_a_row_that_says_so():
    lacking = record("none", 512, []) | {"status": "oom", "message": "no room", "result": None}
    runs = run_tables.runs([*study(), lacking | {"remedy": "huge"}])
    found = row(remedies(runs), "huge", 512)
    assert (found.status, found.message) == ("oom", "no room") and math.isnan(found.test_accuracy)


def test_without_records_the_tables_are_empty():
    runs = run_tables.runs([])
    assert runs.empty and remedies(runs).empty and run_tables.curves([]).empty
    assert time_to_accuracy(runs, run_tables.epochs([]), timed(), 0.02).empty


def test_time_to_accuracy_is_epochs_needed_times_the_seconds_of_the_cell():
    """The target is 0.71 − 0.22: the reference has it after 1 epoch, linear at 512 after 2."""
    cells = timed((1, 128, 4.0), (4, 128, 1.0), (4, 2048, 0.5), (1, 512, 3.0))
    records = study()
    runs, epochs = run_tables.runs(records), run_tables.epochs(records)
    table = time_to_accuracy(runs, epochs, cells, margin=0.22)
    linear = table[(table["remedy"] == "linear") & table["same_split"].eq(True)]
    assert linear["target_accuracy"].unique() == pytest.approx([0.49])
    at = {batch: next(rows.itertuples()) for batch, rows in linear.groupby("global_batch")}
    assert (at[128].epochs_to_accuracy, at[128].seconds, at[128].speedup) == (1, 4.0, 1.0)
    assert (at[512].epochs_to_accuracy, at[512].updates_to_accuracy) == (2, 10)
    assert (at[512].seconds, at[512].reference_seconds) == (2.0, 4.0)
    assert (at[512].epoch_speedup, at[512].speedup) == (4.0, 2.0)
    assert (at[8192].seconds, at[8192].speedup, at[8192].reached) == (math.inf, 0.0, 0)
    # The same global batch on another number of GPUs is told apart.
    other = table[(table["remedy"] == "linear") & (table["gpus"] == 1)]
    assert other.set_index("global_batch")["same_split"].to_dict() == {128: True, 512: False}


def test_a_seed_that_never_gets_there_makes_the_range_infinite_and_two_make_the_median():
    records = [*study(), record("luck", 512, seeds(0.70, 0.70, 0.30))]
    runs, epochs = run_tables.runs(records), run_tables.epochs(records)
    found = row(time_to_accuracy(runs, epochs, timed((4, 128, 1.0)), margin=0.05), "luck", 512)
    assert (found.reached, found.epochs_to_accuracy) == (2, 2)
    assert found.epochs_to_accuracy_max == math.inf


def test_a_global_batch_without_a_timed_cell_has_epochs_and_no_seconds():
    records = study()
    runs, epochs = run_tables.runs(records), run_tables.epochs(records)
    found = row(time_to_accuracy(runs, epochs, timed((1, 128, 4.0)), 0.02), "equal", 512)
    assert found.epochs_to_accuracy == 2 and math.isnan(found.seconds)
