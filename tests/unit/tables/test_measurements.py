"""What the instruments read: communication of an iteration, of an epoch, and time of the device."""

import math

import pytest

from examples.records import GRADIENT_BYTES, epoch, record
from scaling.core.grid import Cell
from scaling.tables.bandwidth import bandwidth
from scaling.tables.communication import communication
from scaling.tables.epoch_parts import in_memory
from scaling.tables.limits import interconnect
from scaling.tables.measurements import costs, device_time, readings
from scaling.tables.timing import timing

CELL = Cell("course", "ddp", 2, 128, 0)
ALONE = Cell("course", "ddp", 1, 128, 0)


def read(rank, estimate, iterations=10, **values):
    return {"rank": rank, "estimate": estimate, "iterations": iterations, **values}


def traced(rank, total, hidden):
    seconds = {"communication_seconds": total, "overlapped_seconds": hidden}
    return read(rank, "profiler", exposed_seconds=total - hidden, **seconds)


def timed(rank, seconds, without):
    found = {"rank": rank, "iterations": 10, "samples": None}
    return {**found, "seconds": seconds, "seconds_without_exchange": without}


def run(cell, seconds, found, memory=()):
    made = record(cell, [epoch(number, seconds, iterations=200) for number in (2, 3, 4)])
    made["communication"]["readings"] = found
    made["in_memory"] = list(memory)
    return cell, made


RUNS = [
    run(ALONE, 20.0, []),
    run(
        CELL,
        12.0,
        [
            # Totals 0.1, 0.2 and 0.3 s; hidden 0.0, 0.18 and 0.02, exposed 0.1, 0.02 and 0.28 s.
            *(traced(0, 0.1, 0.0), traced(1, 0.2, 0.18), traced(2, 0.3, 0.02)),
            read(0, "ddp_log", 0, note="not logged"),
        ],
        [
            timed(0, [0.60, 0.70, 0.66], [0.50, 0.53, 0.52]),
            timed(1, [0.60, 0.71, 0.65], [0.40, 0.54, 0.51]),
        ],
    ),
]


def row(table, estimate):
    return table[table["estimate"] == estimate].iloc[0]


def test_an_epochs_communication_is_its_iterations_times_the_reading():
    parts = communication(timing(RUNS), readings(RUNS), in_memory(RUNS))
    profiler = row(parts, "profiler")
    assert profiler["communication_seconds"] == pytest.approx(200 * 0.010)
    # The total is the epoch in memory, 200 steps of 0.066 s.
    assert profiler["compute_seconds"] == pytest.approx(200 * (0.066 - 0.010))
    # All communication is the median of the ranks' totals, not the sum of medians.
    assert profiler["moving_seconds"] == pytest.approx(200 * 0.02)
    assert profiler["exposed_seconds"] + profiler["overlapped_seconds"] == pytest.approx(
        200 * 0.012
    )
    assert math.isnan(row(parts, "without_communication")["moving_seconds"])
    log = row(parts, "ddp_log")
    assert math.isnan(log["communication_seconds"]) and log["note"] == "not logged"
    # Bytes behind computation travel all the same: the ring of two sends K each iteration.
    rates = bandwidth(timing(RUNS), parts, interconnect([]), GRADIENT_BYTES)
    assert row(rates, "profiler")["communication_seconds"] == pytest.approx(200 * 0.02)
    assert row(rates, "profiler")["bandwidth_gb_per_s"] == pytest.approx(
        GRADIENT_BYTES / 0.02 / 1e9
    )


def on_device(found, seed=0, gpus=2):
    """A run whose ranks read `found` of their devices, or nothing."""
    cell = Cell("course", "ddp", gpus, 128, seed)
    made = record(cell, [epoch(number, 12.0) for number in (2, 3, 4)])
    return cell, made | {"device_time": found}


def rank(index, seconds, busy, kernels=1000, compute=0.02):
    values = {"seconds": seconds, "busy_seconds": busy, "kernels": kernels}
    values |= {"compute_seconds": compute}
    return {"rank": index, "iterations": 10, **values}


def step(*runs):
    return next(device_time(list(runs)).itertuples())


def test_a_step_is_busy_or_a_gap_by_the_medians_of_ranks_then_seeds():
    found = step(
        on_device([rank(0, 0.10, 0.04, compute=0.05), rank(1, 0.12, 0.06, compute=0.03)]),
        on_device([rank(0, 0.20, 0.08, compute=0.04)], seed=1),
        on_device([rank(0, 0.09, 0.08, kernels=1200, compute=0.04)], seed=2),
    )
    # Steps of 0.011, 0.02 and 0.009 s, busy 0.005, 0.008 and 0.008.
    seconds = (found.step_seconds, found.busy_seconds, found.gap_seconds, found.compute_seconds)
    assert seconds == pytest.approx((0.011, 0.008, 0.003, 0.004))
    assert (found.gap_seconds_min, found.gap_seconds_max) == pytest.approx((0.001, 0.012))
    assert (found.kernels, found.count, found.note) == (100, 3, "")


@pytest.mark.parametrize(
    ("found", "note"),
    [
        ([{"rank": 0, "iterations": 0, "note": "a CPU runs no kernels"}], "a CPU runs no kernels"),
        ([], "the device's time was not read"),
    ],
)
def test_a_cell_without_a_reading_says_why(found, note):
    row = step(on_device(found))
    assert (row.count, row.note) == (0, note) and math.isnan(row.gap_seconds)


def test_a_cell_has_the_memory_of_its_gpu_where_a_run_came_to_say():
    lacks, has = record(ALONE, [], status="oom"), record(CELL, [epoch(2, 1.0)])
    has["memory"]["capacity_bytes"] = 1000
    table = costs([(ALONE, lacks), (CELL, has)])
    assert table["memory_capacity_bytes"].fillna(0).tolist() == [0, 1000]


def test_a_cell_has_settled_where_every_run_of_it_has():
    def of(last, seed):
        cell = Cell("course", "ddp", 1, 128, seed)
        made = record(cell, [epoch(2, 1.0), epoch(3, 1.0), epoch(4, last)])
        return cell, made

    steady, faster = of(1.01, 0), of(0.9, 1)
    assert costs([steady])[["drift", "settled"]].values.tolist() == [[pytest.approx(0.01), True]]
    found = costs([steady, faster]).iloc[0]
    assert (found.drift, found.settled) == (pytest.approx(-0.1), False)
    assert math.isnan(costs([(ALONE, record(ALONE, [epoch(2, 1.0)]))]).iloc[0].drift)


def reading(joules, clock=1980):
    return {"energy_joules": joules, "held_back_seconds": {}, "sm_mhz": clock, "celsius": 60}


def test_the_energy_of_a_cell_is_that_of_all_its_gpus_over_all_its_measured_epochs():
    """Two ranks, two epochs of 10 s and one of warm-up; 25,000 images a rank."""
    epochs = [
        epoch(number, 10.0 - rank, rank=rank, samples=25_000, role=role)
        | {"gpu_readings": [reading(1000.0 * number * (rank + 1), 1900 + 80 * rank)]}
        for number, role in ((1, "warmup"), (2, "measured"), (3, "measured"))
        for rank in (0, 1)
    ]
    found = costs([(CELL, record(CELL, epochs))]).iloc[0]
    # 2 + 4 and 3 + 6 kJ: 15 kJ of 100,000 images, of 2 epochs, in 20 s.
    assert found.joules_per_image == pytest.approx(0.15)
    assert found.watt_hours_per_epoch == pytest.approx(7.5 / 3.6)
    assert (found.mean_watts, found.mean_sm_mhz) == (pytest.approx(750), 1940)
    # One GPU that does not count leaves no figure, nor does an epoch whose GPUs were not read.
    for unknown in ([reading(None)], []):
        epochs[-1]["gpu_readings"] = unknown
        found = costs([(CELL, record(CELL, epochs))]).iloc[0]
        assert found[["joules_per_image", "watt_hours_per_epoch", "mean_watts"]].isna().all()
