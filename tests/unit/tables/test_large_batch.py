"""Accuracy at large global batches beside the reference."""

import pytest

from examples import report_tables
from scaling.tables import accuracy as learning


def test_the_reference_is_batch_128_on_one_gpu_or_the_smallest():
    tables = report_tables.make()
    compared = learning.compare_batches(tables["timing"], tables["accuracy"])
    reference = compared[compared["reference"]]
    assert set(reference["batch_size"]) == {128}
    assert set(reference["gpus"]) == {1}
    timing = tables["timing"][tables["timing"]["batch_size"] != 128]
    smaller = learning.compare_batches(timing, tables["accuracy"])
    assert set(smaller[smaller["reference"]]["batch_size"]) == {32}


def test_equal_global_batches_are_within_the_spread_of_their_seeds():
    tables = report_tables.make()
    compared = learning.compare_batches(tables["timing"], tables["accuracy"])
    same = compared[(compared["global_batch_size"] == 128) & (compared["gpus"] == 4)].iloc[0]
    assert same["difference"] == pytest.approx(0)
    assert same["within_spread"]


def test_fewer_than_five_epochs_are_compared_at_the_last():
    tables = report_tables.make()
    short = tables["accuracy"][tables["accuracy"]["epoch"] <= 3]
    compared = learning.compare_batches(tables["timing"], short)
    assert set(compared["epoch"]) == {3}
    reference = compared[compared["reference"]].iloc[0]
    # 0.1 + 0.08 + 3 · 0.12 = 0.54 for seed 0, 0.01 less for each further seed.
    assert reference["train_accuracy"] == pytest.approx(0.53)
    assert (reference["train_accuracy_min"], reference["train_accuracy_max"]) == pytest.approx(
        (0.52, 0.54)
    )
