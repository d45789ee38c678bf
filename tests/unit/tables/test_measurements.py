"""What the instruments read: time of the device, memory, energy, and whether times settled."""

import math

import pytest

from examples.records import epoch, record
from scaling.core.grid import Cell
from scaling.tables.measurements import costs, device_time

CELL = Cell("plain", "ddp", 2, 128, 0)


def on_device(*ranks, seed=0):
    """A run of which ranks read (seconds, busy, compute seconds, kernels) of 10 iterations."""
    names = ("seconds", "busy_seconds", "compute_seconds", "kernels")
    found = [
        {"rank": index, "iterations": 10, **dict(zip(names, values, strict=True))}
        for index, values in enumerate(ranks)
    ]
    cell = Cell("plain", "ddp", 2, 128, seed)
    return cell, record(cell, [epoch(2, 12.0)]) | {"device_time": found}


def test_a_step_is_busy_or_a_gap_by_the_medians_of_ranks_then_seeds():
    runs = [
        on_device((0.10, 0.04, 0.05, 1000), (0.12, 0.06, 0.03, 1000)),
        on_device((0.20, 0.08, 0.04, 1000), seed=1),
        on_device((0.09, 0.08, 0.04, 1200), seed=2),
    ]
    found = next(device_time(runs).itertuples())
    # Steps of 0.011, 0.02 and 0.009 s, busy 0.005, 0.008 and 0.008.
    seconds = (found.step_seconds, found.busy_seconds, found.gap_seconds, found.compute_seconds)
    assert seconds == pytest.approx((0.011, 0.008, 0.003, 0.004))
    assert (found.gap_seconds_min, found.gap_seconds_max) == pytest.approx((0.001, 0.012))
    assert (found.kernels, found.count, found.note) == (100, 3, "")


def test_a_cell_has_settled_where_every_run_of_it_has():
    def of(last, seed):
        cell = Cell("plain", "ddp", 1, 128, seed)
        made = record(cell, [epoch(2, 1.0), epoch(3, 1.0), epoch(4, last)])
        return cell, made

    steady, faster = of(1.01, 0), of(0.9, 1)
    assert costs([steady])[["drift", "settled"]].values.tolist() == [[pytest.approx(0.01), True]]
    found = costs([steady, faster]).iloc[0]
    assert (found.drift, found.settled) == (pytest.approx(-0.1), False)
    assert math.isnan(costs([(CELL, record(CELL, [epoch(2, 1.0)]))]).iloc[0].drift)


def reading(joules):
    return {"energy_joules": joules, "held_back_seconds": {}, "sm_mhz": 1980, "celsius": 60}


def test_the_energy_of_a_cell_is_that_of_all_its_gpus_over_all_its_measured_epochs():
    """Two ranks, two epochs of 10 s and one of warm-up; 25,000 images a rank."""
    epochs = [
        epoch(number, 10.0 - rank, rank=rank, samples=25_000, role=role)
        | {"gpu_readings": [reading(1000.0 * number * (rank + 1))]}
        for number, role in ((1, "warmup"), (2, "measured"), (3, "measured"))
        for rank in (0, 1)
    ]
    found = costs([(CELL, record(CELL, epochs))]).iloc[0]
    # 2 + 4 and 3 + 6 kJ: 15 kJ of 100,000 images, of 2 epochs.
    assert found.joules_per_image == pytest.approx(0.15)
    # One GPU that does not count leaves no figure, nor does an epoch whose GPUs were not read.
    for unknown in ([reading(None)], []):
        epochs[-1]["gpu_readings"] = unknown
        found = costs([(CELL, record(CELL, epochs))]).iloc[0]
        assert math.isnan(found["joules_per_image"])
