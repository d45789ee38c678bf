"""How much of the measured peak a cell uses, and what the rest of its epoch is."""

import math

import pytest

from examples.records import epoch, record, timing_row, timing_table
from scaling.core.grid import Cell
from scaling.tables import limits as peaks
from scaling.tables import schema
from scaling.tables.communication import communication as communicate
from scaling.tables.epoch_parts import epoch_parts
from scaling.tables.measurements import costs, device_time
from scaling.tables.utilization import utilization

FLOPS = 4_000_000_000
# Repeats of products of 1000×1000 matrices, 2e9 operations: 100 TFLOP/s in tf32, 400 in bf16.
# Where it works on, 80 in tf32.
SPRINT, STEADY = {"state": "sprint"}, {"state": "sustained"}
PEAKS = peaks.peaks(
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
    cell = Cell("course", "ddp", gpus, 128, seed)
    made = record(cell, [epoch(n, 10.0) for n in (2, 3, 4)], status=status)
    made["model"]["flops_per_image"] = flops
    made["training"]["recipe_applied"] = {"precision": precision} if precision else None
    return cell, made


def used(times, *runs):
    parts = epoch_parts(times, schema.frame("in_memory"), communicate(times))
    return utilization(times, parts, PEAKS, costs(list(runs)), device_time(list(runs)))


def test_utilization_is_images_a_second_times_their_cost_over_the_peak():
    # 50,000 images in 10 s are 5,000 images/s, 20 TFLOP/s, a fifth of the tf32 peak; without 2 s
    # of loading a quarter.
    times = timing_table(timing_row(1, 128, 10.0, spread=2.5, loader_seconds=2.0))
    row = used(times, run()).iloc[0]
    assert row.images_per_second == 5000
    assert (row.images_per_second_min, row.images_per_second_max) == (4000, 50_000 / 7.5)
    assert row.images_per_second_without_loading == 6250
    assert row.flops_per_second_per_gpu == 2e13
    assert row.peak_flops_per_second == pytest.approx(1e14)
    assert (row.utilization, row.utilization_without_loading) == pytest.approx((0.2, 0.25))
    assert (row.peak_state, row.sustained_utilization) == ("sprint", pytest.approx(0.25))
    assert math.isnan(used(times, run(precision="bf16")).iloc[0].sustained_utilization)
    assert row.note == ""


def test_the_shares_of_an_epoch_add_up_to_it():
    # 4 GPUs: 4 s, 0.5 s of it loading, against 11 s without loading on one: 3.5 - 11 / 4 = 0.75 s
    # of communication. 12,500 images/s on 4 GPUs use 12.5 %.
    times = timing_table(
        timing_row(1, 128, 12.0, loader_seconds=1.0), timing_row(4, 128, 4.0, loader_seconds=0.5)
    )
    one, four = used(times, run(), run(gpus=4)).itertuples()
    assert four.communication_estimate == "subtraction_without_loading"
    shares = (four.utilization, four.loading_share, four.communication_share, four.unknown_share)
    assert shares == pytest.approx((0.125, 0.125, 0.1875, 0.5625))
    assert math.isnan(one.communication_share) and math.isnan(one.idle_share)
    assert one.utilization + one.loading_share + one.unknown_share == pytest.approx(1)


def traced(step, busy, computing, gpus=1):
    """A run whose GPUs, of one process, had steps of so many seconds on a batch in memory."""
    cell, made = run(gpus=gpus)
    each = {"rank": 0, "iterations": 1, "seconds": step, "kernels": 1}
    made["device_time"] = [
        each | {"gpu": gpu, "busy_seconds": b, "compute_seconds": c}
        for gpu, (b, c) in enumerate(zip(busy, computing, strict=True))
    ]
    return cell, made


def test_a_trace_tells_idle_from_slow_on_every_gpu_of_a_process():
    # 10 s an epoch, a fifth of it at the peak; of a step of 8 ms one GPU is busy for 6, the other
    # for 4, and they compute for 5 and 3: idle 3 of 8, computing 4 of 8.
    times = timing_table(timing_row(1, 128, 10.0, loader_seconds=0.0))
    row = used(times, traced(8e-3, [6e-3, 4e-3], [5e-3, 3e-3])).iloc[0]
    assert (row.idle_share, row.slower_share) == pytest.approx((3 / 8, 4 / 8 - 0.2))
    assert row.unknown_share == pytest.approx(1 - 3 / 8 - 4 / 8)
    # Traced kernels may last longer than the step does untraced: no share is below 0.
    row = used(times, traced(8e-3, [9e-3], [9e-3])).iloc[0]
    assert (row.idle_share, row.unknown_share) == (0, 0)


@pytest.mark.parametrize(
    ("seconds", "made", "share", "note"),
    [
        (10.0, run(precision="bf16"), 0.05, ""),
        # 50,000 images in 1 s: 200 TFLOP/s.
        (1.0, run(), 2, "utilization above 100 %"),
        (10.0, run(flops=None), math.nan, "the runs did not record the operations per image"),
        (10.0, run(precision=None), math.nan, "the runs did not record the precision"),
        (10.0, run(precision="float32"), math.nan, "no matrix product was measured in float32"),
        (math.nan, run(), math.nan, "no time (status ok)"),
    ],
)
def test_the_peak_is_that_of_the_precision_and_what_is_missing_is_said(seconds, made, share, note):
    row = used(timing_table(timing_row(1, 128, seconds)), made).iloc[0]
    assert row.utilization == pytest.approx(share, nan_ok=True)
    assert row.note == note


def test_a_cell_costs_what_its_seeds_agree_on():
    found = costs([run(), run(seed=1, precision="bf16")]).iloc[0]
    assert (found.flops_per_image, found.precision) == (FLOPS, "")
    assert found.cost_note == "the runs differ in their precision"
    # A seed that ended before its options were applied does not hide the others.
    found = costs([run(), run(seed=1, flops=None, precision=None, status="oom")]).iloc[0]
    assert (found.flops_per_image, found.precision, found.cost_note) == (FLOPS, "tf32", "")
    assert costs([run(flops=None, precision=None)])["cost_note"].item() == (
        "the runs did not record the operations per image; the runs did not record the precision"
    )


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
