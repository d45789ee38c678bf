"""Bytes, bandwidth and utilization of CIFAR ResNet-18's gradients, worked out by hand."""

import math

import pytest

from examples.records import GRADIENT_BYTES, timing_row, timing_table
from scaling.core.errors import UserError
from scaling.tables.bandwidth import bandwidth, bytes_per_iteration, swept_gradient_bytes
from scaling.tables.communication import communication
from scaling.tables.limits import interconnect

NO_SWEEP = interconnect([])


def sweep_of(gpus, *rows, correct=True):
    return {
        "gpus": gpus,
        "backend": "nccl",
        "rows": [
            {"kind": kind, "message_bytes": size, "seconds": [seconds], "correct": correct}
            for kind, size, seconds in rows
        ],
    }


def table_of(timing, sweep=NO_SWEEP):
    table = bandwidth(timing, communication(timing), sweep, GRADIENT_BYTES)
    return table.set_index("estimate")


A40 = timing_table(timing_row(1, 128, 18.311), timing_row(4, 128, 5.023))


def test_each_gpu_of_a_ring_sends_twice_all_but_one_share_of_the_gradients():
    # 2 · 3/4 · 44,695,848 for four GPUs, 2 · 1/2 · 44,695,848 for two
    assert bytes_per_iteration("ddp", 4, GRADIENT_BYTES) == 67_043_772
    assert bytes_per_iteration("ddp", 2, GRADIENT_BYTES) == 44_695_848


def test_data_parallel_passes_everything_through_the_first_gpu():
    # 2 · 3 · 44,695,848 for four GPUs, 2 · 1 · 44,695,848 for two
    assert bytes_per_iteration("dp", 4, GRADIENT_BYTES) == 268_175_088
    assert bytes_per_iteration("dp", 2, GRADIENT_BYTES) == 89_391_696


def test_the_bytes_of_an_epoch_are_those_of_all_its_iterations():
    row = table_of(A40).loc["subtraction"]
    assert row.iterations == 98  # 50,000 / (4 · 128), rounded up
    assert row.bytes_per_epoch == 6_570_289_656  # 98 · 67,043,772
    # over 5.023 - 18.311 / 4 = 0.44525 s: a hundred times the 0.151 GB/s that was published
    assert row.bandwidth_gb_per_s == pytest.approx(14.7564, abs=1e-4)


def test_the_peak_is_the_bus_bandwidth_of_the_buckets_that_ddp_sends():
    # 30 MB in 1 ms and 10 MB in 1 ms: 1.5 · 40 MB / 2 ms = 30 GB/s (not the mean of 45 and 15)
    sweep = interconnect(
        [
            sweep_of(4, ("bucket", 30_000_000, 1e-3), ("bucket", 10_000_000, 1e-3)),
            sweep_of(2, ("bucket", 30_000_000, 1.0)),
        ]
    )
    row = table_of(A40, sweep).loc["subtraction"]
    assert row.peak_gb_per_s == pytest.approx(30)
    assert row.utilization == pytest.approx(0.49188, abs=1e-5)  # 14.7564 / 30
    assert row.note == ""


def test_a_recipe_that_sends_messages_of_its_own_is_held_against_those():
    timing = timing_table(
        timing_row(1, 128, 18.311, recipe="tuned"), timing_row(4, 128, 5.023, recipe="tuned")
    )
    ddp, own = ("bucket", 10_000_000, 1e-3), ("tuned_bucket", 40_000_000, 1e-3)
    # 1.5 · 40 MB / 1 ms; without it 1.5 · 10 MB / 1 ms
    with_own = table_of(timing, interconnect([sweep_of(4, ddp, own)])).loc["subtraction"]
    without = table_of(timing, interconnect([sweep_of(4, ddp)])).loc["subtraction"]
    assert with_own.peak_gb_per_s == pytest.approx(60)
    assert without.peak_gb_per_s == pytest.approx(15)


def test_data_parallel_is_held_against_one_message_of_all_gradients():
    timing = timing_table(
        timing_row(1, 128, 17.57, strategy="dp"), timing_row(4, 128, 9.34, strategy="dp")
    )
    # 44,695,848 B in 1 ms: 1.5 · 44.695848 = 67.043772 GB/s
    sweep = interconnect(
        [sweep_of(4, ("gradients", GRADIENT_BYTES, 1e-3), ("bucket", 10_000_000, 1.0))]
    )
    row = table_of(timing, sweep).loc["subtraction"]
    assert row.peak_gb_per_s == pytest.approx(67.043772)
    # 98 · 268,175,088 B over 9.34 - 17.57 / 4 = 4.9475 s
    assert row.bandwidth_gb_per_s == pytest.approx(5.31201, abs=1e-5)
    assert row.utilization == pytest.approx(0.079232, abs=1e-6)


def test_a_sweep_whose_sums_were_wrong_gives_no_peak():
    sweep = interconnect([sweep_of(4, ("bucket", 1000, 1.0), correct=False)])
    row = table_of(A40, sweep).loc["subtraction"]
    assert math.isnan(row.peak_gb_per_s)
    assert row.note == "no correct interconnect sweep for 4 GPUs"


@pytest.mark.parametrize("seconds", [4.5, 5.0])
def test_communication_of_nothing_or_less_has_no_bandwidth(seconds):
    timing = timing_table(timing_row(1, 512, 20.0), timing_row(4, 512, seconds))
    sweep = interconnect([sweep_of(4, ("bucket", 1000, 1.0))])
    row = table_of(timing, sweep).loc["subtraction"]
    assert math.isnan(row.bandwidth_gb_per_s) and math.isnan(row.utilization)
    assert row.communication_seconds == seconds - 5.0
    assert row.note == "communication not above 0: no bandwidth"


def test_more_than_the_peak_is_flagged():
    # the peak of 1.5 · 10 MB / 1.5 ms = 10 GB/s is below the 14.7564 GB/s of the cell
    sweep = interconnect([sweep_of(4, ("bucket", 10_000_000, 1.5e-3))])
    row = table_of(A40, sweep).loc["subtraction"]
    assert row.utilization == pytest.approx(1.47564, abs=1e-5)
    assert row.note == (
        "utilization above 100 % (the estimate does not see communication behind computation)"
    )


def test_sweeps_of_different_models_are_refused():
    sweep = interconnect([sweep_of(2, ("gradients", 8, 1.0)), sweep_of(4, ("gradients", 12, 1.0))])
    with pytest.raises(UserError, match="gradients of 8 and 12 bytes: run them again"):
        swept_gradient_bytes(sweep)
