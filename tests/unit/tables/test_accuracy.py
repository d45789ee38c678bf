"""Loss and accuracy: one row per run and epoch, and what diverged or never ran."""

import math

import pytest

from examples.records import epoch, record
from scaling.core.grid import Cell
from scaling.tables.accuracy import accuracy

CELL = Cell("course", "ddp", 1, 128, 0)
TEST = {"test_loss": 1.1, "test_accuracy": 0.6}


def test_every_epoch_that_trains_has_a_row_and_the_last_one_the_test_figures():
    epochs = [
        epoch(1, 9.0, role="warmup", train_loss=2.0, train_accuracy=0.2),
        epoch(2, 8.0, train_loss=1.5, train_accuracy=0.4),
        epoch(3, 8.0, train_loss=1.2, train_accuracy=0.5),
        epoch(4, 8.0, role="instrumented", train_loss=9.9, train_accuracy=0.1),
    ]
    table = accuracy([(CELL, record(CELL, epochs, evaluation=TEST))], "measured")
    assert table.epoch.tolist() == [1, 2, 3]
    assert table.train_loss.tolist() == [2.0, 1.5, 1.2]
    assert table.train_accuracy.tolist() == [0.2, 0.4, 0.5]
    assert table.test_loss.isna().tolist() == [True, True, False]
    assert (table.iloc[2].test_loss, table.iloc[2].test_accuracy) == (1.1, 0.6)
    assert set(table.study) == {"measured"}


def test_ranks_count_by_the_samples_they_saw():
    epochs = [
        epoch(1, 8.0, rank=0, samples=300, train_loss=1.0, train_accuracy=0.5),
        epoch(1, 8.0, rank=1, samples=100, train_loss=2.0, train_accuracy=0.1),
    ]
    row = accuracy([(CELL, record(CELL, epochs))], "measured").iloc[0]
    assert row.train_loss == pytest.approx(1.25)  # (300 · 1 + 100 · 2) / 400
    assert row.train_accuracy == pytest.approx(0.4)  # (150 + 10) / 400


def test_the_loss_of_a_rank_that_was_not_finite_leaves_the_epoch_without_loss():
    epochs = [epoch(1, 8.0, rank=0, train_loss=1.0), epoch(1, 8.0, rank=1, train_loss=None)]
    assert math.isnan(accuracy([(CELL, record(CELL, epochs))], "measured").iloc[0].train_loss)


def test_the_accuracy_of_a_diverged_run_is_not_told_but_its_losses_are():
    epochs = [epoch(1, 8.0, train_loss=3.0), epoch(2, 8.0, train_loss=None)]
    made = record(CELL, epochs, status="diverged", evaluation=TEST)
    table = accuracy([(CELL, made)], "measured")
    assert table.status.tolist() == ["diverged", "diverged"]
    assert table.train_accuracy.isna().all() and table.test_accuracy.isna().all()
    assert table.train_loss.tolist() == [3.0, pytest.approx(math.nan, nan_ok=True)]


def test_runs_that_never_trained_keep_one_row():
    other = Cell("course", "ddp", 4, 8192, 0)
    runs = [(other, record(other, [], status="oom")), (CELL, None)]
    table = accuracy(runs, "measured")
    assert table.status.tolist() == ["missing", "oom"]
    assert table.gpus.tolist() == [1, 4]
    assert table.epoch.isna().all()
