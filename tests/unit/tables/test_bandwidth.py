"""The peak bandwidth of a link by the messages of a cell, and communication of nothing."""

import math

import pytest

from examples.records import GRADIENT_BYTES, timing_row, timing_table
from scaling.core.grid import CELL_KEYS
from scaling.tables import schema
from scaling.tables.communication import bandwidth, communication, readings
from scaling.tables.limits import interconnect

NO_SWEEP = interconnect([])
A40 = timing_table(timing_row(1, 128, 18.311), timing_row(4, 128, 5.023))
DP = timing_table(timing_row(1, 128, 17.57, strategy="dp"), timing_row(4, 128, 9.34, strategy="dp"))


def sweep_of(*rows, gpus=4, correct=True):
    found = [
        {"kind": kind, "message_bytes": size, "seconds": [seconds], "correct": correct}
        for kind, size, seconds in rows
    ]
    return interconnect([{"gpus": gpus, "backend": "nccl", "rows": found}])


def row_of(timing, sweep=NO_SWEEP, **costs):
    own = [timing.iloc[-1][CELL_KEYS].to_dict() | costs] if costs else []
    known = schema.frame("costs", own)
    parts = communication(timing, schema.frame("in_memory"), readings([]))
    (row,) = bandwidth(timing, parts, sweep, GRADIENT_BYTES, known).itertuples()
    return row


@pytest.mark.parametrize(
    ("timing", "sweep", "peak", "engine"),
    [
        # 30 MB in 1 ms and 10 MB in 1 ms: 1.5 · 40 MB / 2 ms = 30 GB/s (not the mean of 45 and 15)
        (A40, sweep_of(("bucket", 30_000_000, 1e-3), ("bucket", 10_000_000, 1e-3)), 30, "eager"),
        # Of another number of GPUs; whose sums were wrong
        (A40, sweep_of(("bucket", 1000, 1.0), gpus=2), math.nan, "eager"),
        (A40, sweep_of(("bucket", 1000, 1.0), correct=False), math.nan, "eager"),
        # An engine's own messages, 1.5 · 40 MB / 1 ms; without them DDP's, 1.5 · 10 MB / 1 ms
        (
            A40,
            sweep_of(("bucket", 10_000_000, 1e-3), ("tuned_bucket", 40_000_000, 1e-3)),
            60,
            "resident",
        ),
        (A40, sweep_of(("bucket", 10_000_000, 1e-3)), 15, "resident"),
        # One message of all gradients: 44,695,848 B in 1 ms, 1.5 · 44.695848 GB/s
        (
            DP,
            sweep_of(("gradients", GRADIENT_BYTES, 1e-3), ("bucket", 10_000_000, 1.0)),
            67.043772,
            "eager",
        ),
    ],
)
def test_the_peak_is_the_bus_bandwidth_of_the_messages_that_a_cell_sends(
    timing, sweep, peak, engine
):
    row = row_of(timing, sweep, engine=engine)
    assert row.peak_gb_per_s == pytest.approx(peak, nan_ok=True)
    share = row.bandwidth_gb_per_s / peak
    assert row.utilization == pytest.approx(share, nan_ok=True)


def test_gradients_that_are_sent_in_bf16_are_half_the_bytes():
    whole, half = (row_of(A40, sent_share=share) for share in (1.0, 0.5))
    assert half.bytes_per_iteration == pytest.approx(whole.bytes_per_iteration / 2, abs=1)
    assert half.bandwidth_gb_per_s == pytest.approx(whole.bandwidth_gb_per_s / 2)


@pytest.mark.parametrize("seconds", [4.5, 5.0])
def test_communication_of_nothing_or_less_has_no_bandwidth(seconds):
    timing = timing_table(timing_row(1, 512, 20.0), timing_row(4, 512, seconds))
    row = row_of(timing, sweep_of(("bucket", 1000, 1.0)))
    assert math.isnan(row.bandwidth_gb_per_s) and math.isnan(row.utilization)
