"""Communication by subtraction, worked out by hand from the A40 study's times."""

import math

import pytest

from examples.records import timing_row, timing_table
from scaling.tables.communication import communication

A40 = timing_table(
    timing_row(1, 128, 18.311, loader_seconds=0.26),  # 18.051 s without loading
    timing_row(1, 8192, status="oom"),
    timing_row(4, 128, 5.023, loader_seconds=0.171),  # 4.852 s without loading
    timing_row(4, 2048, 5.976, loader_seconds=1.069),
    timing_row(4, 8192, status="oom"),
)


def rows(timing, batch_size):
    table = communication(timing)
    return table[table.batch_size == batch_size].set_index("estimate")


def test_communication_is_what_the_ideal_share_of_the_single_gpu_time_leaves():
    row = rows(A40, 128).loc["subtraction"]
    assert row.total_seconds == 5.023
    assert row.compute_seconds == pytest.approx(4.57775)  # 18.311 / 4
    assert row.communication_seconds == pytest.approx(0.44525)  # 5.023 - 4.57775
    assert row.note == ""


def test_the_same_subtraction_is_done_without_loading():
    row = rows(A40, 128).loc["subtraction_without_loading"]
    assert row.total_seconds == pytest.approx(4.852)
    assert row.compute_seconds == pytest.approx(4.51275)  # 18.051 / 4
    assert row.communication_seconds == pytest.approx(0.33925)  # 4.852 - 4.51275


def test_negative_communication_is_kept_and_flagged():
    timing = timing_table(timing_row(1, 512, 20.0), timing_row(4, 512, 4.5))
    row = rows(timing, 512).loc["subtraction"]
    assert row.communication_seconds == -0.5  # 4.5 - 20 / 4
    assert row.note == "communication below 0: the cell took less than T(1,b) / N"


def test_without_a_baseline_the_total_stays_and_the_note_says_why():
    table = rows(A40, 2048)
    assert table.total_seconds.tolist() == [5.976, pytest.approx(4.907)]
    assert table.communication_seconds.isna().all()
    assert set(table.note) == {"no single-GPU time for b=2048 (not in the grid)"}


def test_a_study_that_did_not_separate_loading_has_one_estimate_only():
    timing = timing_table(timing_row(1, 128, 17.57), timing_row(4, 128, 9.34))
    timing.loc[1, "epoch_seconds_without_loading"] = math.nan
    table = rows(timing, 128)
    assert table.loc["subtraction"].communication_seconds == pytest.approx(4.9475)  # 9.34 - 4.3925
    row = table.loc["subtraction_without_loading"]
    assert math.isnan(row.communication_seconds)
    assert row.note == "no time without loading, of the cell or of its single-GPU baseline"
