"""Which times on several GPUs differ by no more than noise from those on one."""

import pytest

from examples.records import timing_row, timing_table
from scaling.tables import schema
from scaling.tables.speedup import speedup

NONE = schema.frame("costs")


def cell(timing, gpus, batch_size, costs=NONE):
    table = speedup(timing, costs)
    (row,) = table[(table.gpus == gpus) & (table.batch_size == batch_size)].iloc
    return row


@pytest.mark.parametrize(
    ("seconds", "counts", "within"),
    [
        (19.0, (3, 3), True),  # 18.5 … 19.5 and 18 … 22 overlap
        (17.5, (3, 3), True),  # 17 … 18 touches 18 … 22
        (22.5, (3, 3), True),  # 22 … 23 touches it from above
        (17.0, (3, 3), False),  # 16.5 … 17.5 lies below 18 … 22
        (23.0, (3, 3), False),  # slower, beyond the noise
        # Measured once, a time has no spread to be within.
        *((20.0, (1, 3), None), (20.0, (3, 1), None)),
    ],
)
def test_times_whose_ranges_overlap_differ_by_no_more_than_noise(seconds, counts, within):
    timing = timing_table(
        timing_row(1, 128, 20, spread=2, count=counts[0]),
        timing_row(2, 128, seconds, spread=0.5, count=counts[1]),
    )
    assert cell(timing, 2, 128).within_spread is within


@pytest.mark.parametrize(
    ("switches", "ratio"),
    [
        ("channels_last, compile", True),
        ("bf16_compression, channels_last, compile", True),
        ("channels_last", False),
    ],
)
def test_a_cell_without_a_switch_of_its_baseline_has_no_ratio(switches, ratio):
    timing = timing_table(timing_row(1, 128, 20), timing_row(2, 128, 10), timing_row(1, 256, 20))
    costs = timing[["recipe", "strategy", "gpus", "batch_size"]].assign(
        switches=["channels_last, compile", switches, "channels_last, compile"]
    )
    row = cell(timing, 2, 128, costs)
    assert (row.speedup == 2) == (row.fixed_global_batch_efficiency == 1) == ratio
    assert ("no ratio: one GPU ran with compile, which" in row.note) != ratio
