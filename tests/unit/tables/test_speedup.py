"""Speedup: three views of one grid, worked out by hand from the A40 study's times."""

import math

import pytest

from examples.records import timing_row, timing_table
from scaling.tables.speedup import speedup

A40 = timing_table(
    timing_row(1, 128, 18.311),
    timing_row(1, 512, 19.704),
    timing_row(1, 8192, status="oom"),
    timing_row(4, 128, 5.023),
    timing_row(4, 2048, 5.976),
)


def cell(timing, gpus, batch_size):
    table = speedup(timing)
    (row,) = table[(table.gpus == gpus) & (table.batch_size == batch_size)].iloc
    return row


def test_the_three_views_of_a_cell():
    row = cell(A40, 4, 128)
    assert row.baseline_epoch_seconds == 18.311
    assert row.speedup == pytest.approx(3.6454, abs=1e-4)  # 18.311 / 5.023
    assert row.efficiency == pytest.approx(0.91136, abs=1e-5)  # 3.6454 / 4
    # 391 steps of 18.311 / 391 = 46.831 ms on one GPU; 98 of 5.023 / 98 = 51.255 ms on four.
    assert row.weak_efficiency == pytest.approx(0.91369, abs=1e-5)  # 46.831 / 51.255
    assert row.weak_speedup == pytest.approx(3.65476, abs=1e-5)  # 4 · 0.91369
    assert row.fixed_global_batch_speedup == pytest.approx(3.92275, abs=1e-5)  # 19.704 / 5.023
    assert row.fixed_global_batch_efficiency == pytest.approx(0.98069, abs=1e-5)  # 3.92275 / 4
    assert row.note == ""


def test_one_gpu_is_its_own_baseline():
    row = cell(A40, 1, 128)
    views = ["speedup", "efficiency", "weak_speedup", "weak_efficiency"]
    views += ["fixed_global_batch_speedup", "fixed_global_batch_efficiency"]
    assert row[views].tolist() == [1] * 6
    assert row.within_spread is None and row.note == ""


def test_a_missing_baseline_is_said_with_its_reason():
    row = cell(A40, 4, 2048)
    assert math.isnan(row.speedup) and math.isnan(row.weak_speedup)
    assert row.note == (
        "no single-GPU time for b=2048 (not in the grid); "
        "fixed global batch: no single-GPU time for b=8192 (status oom)"
    )


def test_the_baseline_is_of_the_same_recipe_and_strategy():
    timing = timing_table(
        timing_row(1, 128, 18.0),
        timing_row(1, 128, 16.0, strategy="dp"),
        timing_row(1, 128, 4.0, recipe="tuned"),
        timing_row(2, 128, 8.0, strategy="dp"),
    )
    assert cell(timing, 2, 128).speedup == 2.0  # 16 / 8


def test_the_range_of_the_speedup_pairs_the_extremes_of_both_times():
    timing = timing_table(timing_row(1, 128, 20, spread=2), timing_row(4, 128, 10, spread=1))
    row = cell(timing, 4, 128)
    assert (row.speedup_min, row.speedup_max) == pytest.approx((18 / 11, 22 / 9))


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


def test_more_than_n_times_as_fast_is_flagged_in_each_view():
    # strong: 20 / 9 = 2.22; weak: 2 · (20/98) / (9/49) = 2.22; fixed global batch: 26 / 9 = 2.89
    timing = timing_table(
        timing_row(1, 512, 20.0), timing_row(1, 1024, 26.0), timing_row(2, 512, 9.0)
    )
    row = cell(timing, 2, 512)
    assert row.note == ("speedup above N; weak speedup above N; fixed global batch speedup above N")
