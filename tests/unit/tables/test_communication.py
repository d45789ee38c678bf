"""Communication by subtraction in a study that did not separate loading."""

import math

import pytest

from examples.records import timing_row, timing_table
from scaling.tables.communication import communication


def rows(timing, batch_size):
    table = communication(timing)
    return table[table.batch_size == batch_size].set_index("estimate")


def test_a_study_that_did_not_separate_loading_has_one_estimate_only():
    timing = timing_table(timing_row(1, 128, 17.57), timing_row(4, 128, 9.34))
    timing.loc[1, "epoch_seconds_without_loading"] = math.nan
    whole, without = rows(timing, 128).itertuples()
    assert whole.communication_seconds == pytest.approx(4.9475)  # 9.34 - 4.3925
    assert math.isnan(without.communication_seconds)
    assert without.note == "no time without loading, of the cell or of its single-GPU baseline"
