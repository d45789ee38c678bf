"""Communication by subtraction, worked out by hand from the A40 study's times."""

import math

import pytest

from examples.records import timing_row, timing_table
from scaling.tables.communication import communication

A40 = timing_table(
    timing_row(1, 128, 18.311, loader_seconds=0.26),  # 18.051 s without loading
    timing_row(4, 128, 5.023, loader_seconds=0.171),  # 4.852 s without loading
)


def test_communication_is_what_the_ideal_share_of_the_single_gpu_time_leaves():
    table = communication(A40)
    assert table.total_seconds.tolist() == pytest.approx([5.023, 4.852])
    assert table.compute_seconds.tolist() == pytest.approx([4.57775, 4.51275])  # 18.311, 18.051 / 4
    assert table.communication_seconds.tolist() == pytest.approx([0.44525, 0.33925])
    assert table.note.tolist() == ["", ""]


def test_a_study_that_did_not_separate_loading_has_one_estimate_only():
    timing = timing_table(timing_row(1, 128, 17.57), timing_row(4, 128, 9.34))
    timing.loc[1, "epoch_seconds_without_loading"] = math.nan
    whole, without = communication(timing).itertuples()
    assert whole.communication_seconds == pytest.approx(4.9475)  # 9.34 - 4.3925
    assert math.isnan(without.communication_seconds)
    assert without.note == "no time without loading, of the cell or of its single-GPU baseline"
