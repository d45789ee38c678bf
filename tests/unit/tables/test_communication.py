"""Communication by subtraction, worked out by hand from the A40 study's times."""

import math

import pytest

from examples.records import timing_row, timing_table
from scaling.tables.communication import communication

A40 = timing_table(
    timing_row(1, 128, 18.311, loader_seconds=0.26),  # 18.051 s without loading
    timing_row(4, 128, 5.023, loader_seconds=0.171),  # 4.852 s without loading
    timing_row(4, 2048, 5.976, loader_seconds=1.069),
)


def rows(timing, batch_size):
    table = communication(timing)
    return table[table.batch_size == batch_size].set_index("estimate")


def test_communication_is_what_the_ideal_share_of_the_single_gpu_time_leaves():
    table = rows(A40, 128)
    assert table.total_seconds.tolist() == pytest.approx([5.023, 4.852])
    assert table.compute_seconds.tolist() == pytest.approx([4.57775, 4.51275])  # 18.311, 18.051 / 4
    assert table.communication_seconds.tolist() == pytest.approx([0.44525, 0.33925])
    assert table.note.tolist() == ["", ""]


def test_negative_communication_is_kept_and_flagged():
    row = rows(timing_table(timing_row(1, 512, 20.0), timing_row(4, 512, 4.5)), 512).iloc[0]
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
    whole, without = rows(timing, 128).itertuples()
    assert whole.communication_seconds == pytest.approx(4.9475)  # 9.34 - 4.3925
    assert math.isnan(without.communication_seconds)
    assert without.note == "no time without loading, of the cell or of its single-GPU baseline"
