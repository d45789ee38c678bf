"""The device's time: what a trace says is busy, and what a table makes of it."""

import math

import pytest

from examples.records import epoch, record
from scaling.core.grid import Cell
from scaling.core.records import upgrade
from scaling.instruments.kernel_trace import Trace
from scaling.tables.measurements import device_time

CELL = Cell("course", "ddp", 2, 128, 0)


def run(found, seed=0, **cell):
    own = Cell(**(vars(CELL) | {"seed": seed} | cell))
    made = record(own, [epoch(number, 12.0) for number in (2, 3, 4)])
    if found is not None:
        made["device_time"] = found
    return own, upgrade(made)


def rank(index, seconds, busy, kernels=1000, iterations=10, compute=0.02):
    values = {"seconds": seconds, "busy_seconds": busy, "kernels": kernels}
    values |= {"compute_seconds": compute} if compute is not None else {}
    return {"rank": index, "iterations": iterations, **values}


def only(runs):
    return next(device_time(runs).itertuples())


def test_anything_that_runs_keeps_the_busiest_device_busy_and_overlaps_count_once():
    trace = Trace(
        communication={0: [(10.0, 40.0)], 1: [(0.0, 5.0)]},
        compute={0: [(0.0, 20.0), (60.0, 70.0)], 1: [(0.0, 30.0)]},
    )
    # Device 0: 0 to 40 and 60 to 70, of which it computes from 0 to 20 and from 60 to 70.
    assert list(trace.busiest().values()) == pytest.approx([50e-6, 30e-6, 3])
    assert trace.communicating() == (pytest.approx(30e-6), pytest.approx(10e-6))
    assert Trace({}, {0: [(0.0, 1.0)]}).communicating() is None


def test_a_device_that_waits_inside_a_collective_does_not_compute():
    # Three kernels of 5 µs, two at once; an all-reduce that waits 85 µs for another rank.
    trace = Trace({0: [(10.0, 95.0)]}, {0: [(0.0, 5.0), (2.0, 7.0), (7.0, 12.0)]})
    assert list(trace.busiest().values()) == pytest.approx([95e-6, 12e-6, 4])
    assert list(Trace({0: [(0.0, 3.0)]}, {}).busiest().values()) == pytest.approx([3e-6, 0, 1])
    assert list(Trace({}, {}).busiest().values()) == [0, 0, 0]


def test_compute_is_told_from_waiting_by_the_same_medians():
    row = only([run([rank(0, 0.1, 0.09, compute=0.05), rank(1, 0.1, 0.09, compute=0.03)])])
    assert row.compute_seconds == pytest.approx(0.004)
    assert row.gap_seconds == pytest.approx(0.001)


def test_a_record_from_before_compute_was_told_apart_knows_it_on_one_gpu_alone():
    row = only([run([rank(0, 0.1, 0.09, compute=None), rank(1, 0.1, 0.09)])])
    assert row.busy_seconds == pytest.approx(0.009) and math.isnan(row.compute_seconds)
    alone = only([run([rank(0, 0.1, 0.09, compute=None)], gpus=1)])
    assert alone.compute_seconds == alone.busy_seconds == pytest.approx(0.009)


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
