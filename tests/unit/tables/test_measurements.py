"""What the instruments read of the device, memory and energy; how much of the peak a cell uses."""

import math
from dataclasses import replace

import pytest

from examples.records import epoch, record, timing_row, timing_table
from scaling.core.grid import Cell
from scaling.tables import schema
from scaling.tables.epoch_parts import communication, epoch_parts, readings, utilization
from scaling.tables.measurements import costs, device_time, peaks
from scaling.tables.timing import timing

FLOPS = 4_000_000_000
# Products of 1000×1000 matrices, 2e9 operations: 100 TFLOP/s in tf32, sustained 80, 400 in bf16.
RATES = [("tf32", [2e-5], "sprint"), ("tf32", [2.5e-5], "sustained"), ("bf16", [5e-6], "sprint")]
PRODUCT = {"quantity": "matrix_product", "matrix_size": 1000}
READ = [dict(zip(("precision", "seconds", "state"), each, strict=True)) for each in RATES]
PEAKS = peaks({"rows": [PRODUCT | each for each in READ]})


def run(gpus=2, seed=0, flops=FLOPS, precision="tf32", status="ok", **more):
    """A run of three epochs and its record."""
    cell = Cell("plain", "ddp", gpus, 128, seed)
    made = record(cell, [epoch(n, 10.0) for n in (2, 3, 4)], status=status)
    made["model"]["flops_per_image"] = flops
    made["training"]["recipe_applied"] = {"precision": precision} if precision else None
    return cell, made | more


def on_device(*ranks, seed=0):
    """A run of which ranks read (seconds, busy, compute seconds, kernels) of 10 iterations."""
    names = ("seconds", "busy_seconds", "compute_seconds", "kernels")
    read = [dict(zip(names, values, strict=True)) | {"iterations": 10} for values in ranks]
    return run(seed=seed, device_time=read)


def cost(*runs):
    return costs(list(runs)).iloc[0]


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
    # 2 + 4 and 3 + 6 kJ: 15 kJ of 100,000 images, of 2 epochs.
    assert cost(run(epochs=epochs)).joules_per_image == pytest.approx(0.15)
    # One GPU that does not count leaves no figure, nor does an epoch whose GPUs were not read.
    for unknown in ([reading(None)], []):
        epochs[-1]["gpu_readings"] = unknown
        assert math.isnan(cost(run(epochs=epochs)).joules_per_image)


def used(times, *runs):
    memory = schema.frame("in_memory")
    parts = epoch_parts(times, memory, communication(times, memory, readings(list(runs))))
    return utilization(times, parts, PEAKS, costs(list(runs)), device_time(list(runs)))


@pytest.mark.parametrize(
    ("made", "share"),
    [
        # 50,000 images in 10 s: 20 TFLOP/s.
        ({"precision": "bf16"}, 0.05),
        ({}, 0.2),
        ({"flops": None}, math.nan),
        ({"precision": None}, math.nan),
        ({"precision": "float32"}, math.nan),
    ],
)
def test_the_peak_is_that_of_the_precision(made, share):
    row = used(timing_table(timing_row(1, 128, 10.0)), run(gpus=1, **made)).iloc[0]
    assert row.utilization == pytest.approx(share, nan_ok=True)


def test_a_cell_costs_what_its_seeds_agree_on():
    assert cost(run(), run(seed=1, precision="bf16")).precision == ""
    # A seed that ended before its options were applied does not hide the others.
    found = cost(run(), run(seed=1, flops=None, precision=None, status="oom"))
    assert (found.flops_per_image, found.precision) == (FLOPS, "tf32")


def test_time_at_the_power_limit_is_that_of_the_gpu_held_back_longest():
    def capped(*seconds):
        """Two epochs of 10 s, of which each rank is held back so long."""
        return [
            epoch(number, 10.0, rank=rank) | {"power_capped_seconds": each}
            for number in (2, 3)
            for rank, each in enumerate(seconds)
        ]

    both = [run(epochs=capped(0, 2)), run(seed=1, epochs=capped(1, 4))]
    assert cost(*both).power_capped_share == pytest.approx((2 + 4) / 20)
    assert math.isnan(cost(run()).power_capped_share)
    # The driver counts in steps, but no GPU is held back longer than it works.
    assert cost(run(epochs=capped(10.1))).power_capped_share == 1.0


def test_the_idle_part_of_a_users_own_command_is_of_its_whole_epochs():
    cell, made = run(gpus=1, precision=None)
    cell = replace(cell, strategy="own")
    counted = {"rank": 0, "gpu": 0, "iterations": 10, "seconds": 30.0, "busy_seconds": 24.0}
    made |= {"cell": vars(cell), "device_time": [counted]}
    made["epochs"] = [row | {"loader_seconds": None} for row in made["epochs"]]
    (row,) = used(timing([(cell, made)]), (cell, made)).itertuples()
    assert row.idle_share == pytest.approx(0.2) and row.unknown_share == pytest.approx(0.8)
    assert math.isnan(row.loading_share)
