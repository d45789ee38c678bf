"""Loss and accuracy of runs."""

import math

import pytest

from examples.records import epoch, record
from scaling.core.grid import Cell
from scaling.tables.accuracy import accuracy

CELL = Cell("plain", "ddp", 1, 128, 0)
TEST = {"test_loss": 1.1, "test_accuracy": 0.6}


def of_record(epochs, **more):
    return accuracy([(CELL, record(CELL, epochs, **more))])


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
