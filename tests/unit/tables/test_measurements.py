"""What the instruments read of the device, memory and energy; how much of the peak a cell uses."""

import math
from dataclasses import replace

import pytest

from examples.records import epoch, record, timing_row, timing_table
from scaling.core.grid import Cell
from scaling.tables import schema
from scaling.tables.communication import communication, readings
from scaling.tables.epoch_parts import epoch_parts, utilization
from scaling.tables.measurements import costs, device_time, peaks
from scaling.tables.timing import timing

CELL = Cell("plain", "ddp", 2, 128, 0)
FLOPS = 4_000_000_000
# Products of 1000×1000 matrices, 2e9 operations: 100 TFLOP/s in tf32, sustained 80, 400 in bf16.
RATES = [("tf32", 2e-5, "sprint"), ("tf32", 2.5e-5, "sustained"), ("bf16", 5e-6, "sprint")]
PRODUCT = {"quantity": "matrix_product", "matrix_size": 1000}
PEAKS = peaks(
    {
        "rows": [
            PRODUCT | {"precision": name, "seconds": [seconds], "state": state}
            for name, seconds, state in RATES
        ]
    }
)


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


def run(gpus=1, seed=0, flops=FLOPS, precision="tf32", status="ok"):
    """A run and its record."""
    cell = Cell("plain", "ddp", gpus, 128, seed)
    made = record(cell, [epoch(n, 10.0) for n in (2, 3, 4)], status=status)
    made["model"]["flops_per_image"] = flops
    made["training"]["recipe_applied"] = {"precision": precision} if precision else None
    return cell, made


def used(times, *runs):
    memory = schema.frame("in_memory")
    parts = epoch_parts(times, memory, communication(times, memory, readings(list(runs))))
    return utilization(times, parts, PEAKS, costs(list(runs)), device_time(list(runs)))


@pytest.mark.parametrize(
    ("seconds", "made", "share"),
    [
        (10.0, run(precision="bf16"), 0.05),
        # 50,000 images in 1 s: 200 TFLOP/s.
        (1.0, run(), 2),
        (10.0, run(flops=None), math.nan),
        (10.0, run(precision=None), math.nan),
        (10.0, run(precision="float32"), math.nan),
        (math.nan, run(), math.nan),
    ],
)
def test_the_peak_is_that_of_the_precision(seconds, made, share):
    row = used(timing_table(timing_row(1, 128, seconds)), made).iloc[0]
    assert row.utilization == pytest.approx(share, nan_ok=True)


def test_a_cell_costs_what_its_seeds_agree_on():
    found = costs([run(), run(seed=1, precision="bf16")]).iloc[0]
    assert (found.flops_per_image, found.precision) == (FLOPS, "")
    # A seed that ended before its options were applied does not hide the others.
    found = costs([run(), run(seed=1, flops=None, precision=None, status="oom")]).iloc[0]
    assert (found.flops_per_image, found.precision) == (FLOPS, "tf32")


def test_time_at_the_power_limit_is_that_of_the_gpu_held_back_longest():
    runs = [run(gpus=2, seed=seed) for seed in (0, 1)]
    for _, made in runs:
        made["epochs"] = [
            epoch(number, 10.0, rank=rank) | {"power_capped_seconds": rank * number}
            for number in (2, 3)
            for rank in (0, 1)
        ]
    assert costs(runs).iloc[0].power_capped_share == pytest.approx((2 + 3) / 20)
    runs[0][1]["epochs"][-1]["power_capped_seconds"] = None
    assert costs(runs).iloc[0].power_capped_share == pytest.approx((2 + 2 + 3) / 40)
    assert math.isnan(costs([run()]).iloc[0].power_capped_share)
    # The driver counts in steps, but no GPU is held back longer than it works.
    cell, made = run()
    for row in made["epochs"]:
        row["power_capped_seconds"] = row["seconds"] + 0.1
    assert costs([(cell, made)]).iloc[0].power_capped_share == 1.0


def test_the_idle_part_of_a_users_own_command_is_of_its_whole_epochs():
    cell, made = run(precision=None)
    cell = replace(cell, strategy="own")
    counted = {"rank": 0, "gpu": 0, "iterations": 10, "seconds": 30.0, "busy_seconds": 24.0}
    made |= {"cell": vars(cell), "device_time": [counted]}
    made["epochs"] = [row | {"loader_seconds": None} for row in made["epochs"]]
    (row,) = used(timing([(cell, made)]), (cell, made)).itertuples()
    assert row.idle_share == pytest.approx(0.2) and row.unknown_share == pytest.approx(0.8)
    assert math.isnan(row.loading_share)
