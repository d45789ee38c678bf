"""The device's time: what a trace says is busy, and what a table makes of it."""

import pytest

from scaling.device_time import device_time
from scaling.grid import Cell
from scaling.kernel_trace import Trace
from unit.records import epoch, record

CELL = Cell("course", "ddp", 2, 128, 0)


def run(found, seed=0, **cell):
    own = Cell(**(vars(CELL) | {"seed": seed} | cell))
    made = record(own, [epoch(number, 12.0) for number in (2, 3, 4)])
    if found is not None:
        made["device_time"] = found
    return own, made


def rank(index, seconds, busy, kernels=1000, iterations=10):
    values = {"seconds": seconds, "busy_seconds": busy, "kernels": kernels}
    return {"rank": index, "iterations": iterations, **values}


def only(runs):
    return next(device_time(runs).itertuples())


def test_anything_that_runs_keeps_the_busiest_device_busy_and_overlaps_count_once():
    trace = Trace(
        communication={0: [(10.0, 40.0)], 1: [(0.0, 5.0)]},
        compute={0: [(0.0, 20.0), (60.0, 70.0)], 1: [(0.0, 30.0)]},
    )
    # Device 0: 0 to 40 and 60 to 70.
    assert trace.busy() == (pytest.approx(50e-6), 3)
    assert trace.communicating() == (pytest.approx(30e-6), pytest.approx(10e-6))
    assert Trace({}, {0: [(0.0, 1.0)]}).communicating() is None


def test_a_step_is_busy_or_a_gap_by_the_medians_of_ranks_then_seeds():
    runs = [
        run([rank(0, 0.10, 0.04), rank(1, 0.12, 0.06)]),
        run([rank(0, 0.20, 0.08)], seed=1),
        run([rank(0, 0.09, 0.08, kernels=1200)], seed=2),
    ]
    row = only(runs)
    # Steps of 0.011, 0.02 and 0.009 s, busy 0.005, 0.008 and 0.008.
    assert row.step_seconds == pytest.approx(0.011)
    assert row.busy_seconds == pytest.approx(0.008)
    assert row.gap_seconds == pytest.approx(0.003)
    assert (row.gap_seconds_min, row.gap_seconds_max) == (
        pytest.approx(0.001),
        pytest.approx(0.012),
    )
    assert (row.kernels, row.count, row.note) == (100, 3, "")


def test_a_gap_below_0_is_kept():
    assert only([run([rank(0, 0.10, 0.11)])]).gap_seconds == pytest.approx(-0.001)


@pytest.mark.parametrize(
    ("found", "note"),
    [
        ([{"rank": 0, "iterations": 0, "note": "a CPU runs no kernels"}], "a CPU runs no kernels"),
        (None, "the device's time was not read"),
        ([], "the device's time was not read"),
    ],
)
def test_a_cell_without_a_reading_says_why(found, note):
    row = only([run(found)])
    assert (row.count, row.note) == (0, note)
    assert row.gap_seconds != row.gap_seconds


def test_a_run_without_a_record_has_no_figures():
    assert only([(CELL, None)]).count == 0
