"""How much of the measured peak a cell uses, where something is missing or seeds differ."""

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

FLOPS = 4_000_000_000
# Repeats of products of 1000×1000 matrices, 2e9 operations: 100 TFLOP/s in tf32, 400 in bf16.
# Where it works on, 80 in tf32.
SPRINT, STEADY = {"state": "sprint"}, {"state": "sustained"}
PEAKS = peaks(
    {
        "rows": [
            {"quantity": "matrix_product", "precision": name, "matrix_size": 1000, "seconds": [s]}
            | state
            for name, s, state in (
                ("tf32", 2e-5, SPRINT),
                ("tf32", 2.5e-5, STEADY),
                ("bf16", 5e-6, SPRINT),
            )
        ]
    }
)


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
