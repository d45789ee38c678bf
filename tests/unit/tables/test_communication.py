"""Communication by instruments and by subtraction, which one counts, and bandwidths."""

import math
from dataclasses import replace

import pandas as pd
import pytest

from examples.records import GRADIENT_BYTES, epoch, record, timing_row, timing_table
from scaling.core.grid import CELL_KEYS, Cell
from scaling.tables import schema
from scaling.tables.epoch_parts import (
    HIGH,
    LOW,
    SECONDS,
    bandwidth,
    communication,
    epoch_parts,
    interconnect,
    readings,
)

CELL = Cell("plain", "ddp", 2, 128, 0)
TIMES = timing_table(timing_row(1, 128, 10.0, loader_seconds=1), timing_row(2, 128, 6.0))
NOT_IN_MEMORY = schema.frame("in_memory")


def communicated(timing, read=None, memory=NOT_IN_MEMORY):
    return communication(timing, memory, readings([]) if read is None else read)


def run(repeat, *added):
    """A run whose slowest rank takes so much longer with exchange in 10 steps, repeat by repeat."""
    ranks = [
        {"rank": rank, "iterations": 10, "samples": 2560, "seconds": [slow + one for one in added]}
        | {"seconds_without_exchange": [slow] * len(added)}
        for rank, slow in ((0, 1.0), (1, 0.5))
    ]
    return replace(CELL, repeat=repeat), record(CELL, [epoch(2, 6.0)]) | {"in_memory": ranks}


@pytest.mark.parametrize(
    ("runs", "ends"),
    [
        # Per step: half and double of a lone reading, also below 0.
        ([run(0, 0.1)], (0.01, 0.005, 0.02)),
        ([run(0, -0.1)], (-0.01, -0.02, -0.005)),
        # The range of three repeats to either side of their median.
        ([run(0, 0.1, 0.12, 0.16)], (0.012, 0.006, 0.018)),
        # Medians 0.011 and 0.013: Student's 12.706 · 0.002 / √2 / √2.
        ([run(0, 0.10, 0.12), run(1, 0.12, 0.14)], (0.012, 0.012 - 0.0127062, 0.012 + 0.0127062)),
    ],
)
def test_a_reading_has_the_noise_between_runs_else_between_repeats_else_half_and_double(runs, ends):
    (found,) = readings(runs).to_dict("records")
    assert found["estimate"] == "without_communication"
    assert [found[name] for name in (SECONDS[0], LOW, HIGH)] == pytest.approx(ends, rel=1e-4)


@pytest.mark.parametrize(
    ("read", "seconds"),
    [
        # 6 s less half of 9 s without loading.
        ([], 1.5),
        (["profiler"], 0.2),
        (["profiler", "without_communication"], 0.1),
    ],
)
def test_steps_without_exchange_come_before_the_trace_and_that_before_subtraction(read, seconds):
    values = {"profiler": 0.2, "without_communication": 0.1}
    cell = TIMES.iloc[1][[*CELL_KEYS, "iterations"]].to_dict()
    found = [
        cell | {"estimate": name} | dict.fromkeys(SECONDS, values[name] / cell["iterations"])
        for name in read
    ]
    table = communicated(TIMES, pd.DataFrame(found, columns=readings([]).columns))
    parts = epoch_parts(TIMES, NOT_IN_MEMORY, table).iloc[1]
    assert parts["communication_estimate"] == (read or ["subtraction_without_loading"])[-1]
    assert parts["communication_seconds"] == pytest.approx(seconds)


@pytest.mark.parametrize(("gpus", "known"), [(1, False), (2, False), (4, True)])
def test_nothing_is_subtracted_where_the_gpu_worked_while_its_host_waited(gpus, known):
    row = {"recipe": "plain", "strategy": "ddp", "gpus": gpus, "batch_size": 128}
    memory = schema.frame("in_memory", [row | {"in_memory_epoch_seconds": 9.5}])
    assert communicated(TIMES, memory=memory)["communication_seconds"].notna().tolist() == [known]


A40 = timing_table(timing_row(1, 128, 18.311), timing_row(4, 128, 5.023))
DP = A40.assign(strategy="dp")


def sweep_of(*rows, gpus=4, correct=True):
    found = [
        {"kind": kind, "message_bytes": size, "seconds": [seconds], "correct": correct}
        for kind, size, seconds in rows
    ]
    return interconnect([{"gpus": gpus, "backend": "nccl", "rows": found}])


def row_of(timing, sweep, **costs):
    known = schema.frame("costs", [timing.iloc[-1][CELL_KEYS].to_dict() | costs])
    (row,) = bandwidth(timing, communicated(timing), sweep, known).itertuples()
    return row


BUCKET, OWN = ("bucket", 10_000_000, 1e-3), ("tuned_bucket", 40_000_000, 1e-3)
WHOLE = ("gradients", GRADIENT_BYTES, 1e-3)


@pytest.mark.parametrize(
    ("timing", "sweep", "peak", "engine"),
    [
        # 30 MB in 1 ms and 10 MB in 1 ms: 1.5 · 40 MB / 2 ms = 30 GB/s (not the mean of 45 and 15)
        (A40, sweep_of(("bucket", 30_000_000, 1e-3), BUCKET, WHOLE), 30, "eager"),
        # Of another number of GPUs; whose sums were wrong
        (A40, sweep_of(BUCKET, gpus=2), math.nan, "eager"),
        (A40, sweep_of(BUCKET, correct=False), math.nan, "eager"),
        # An engine's own messages, 1.5 · 40 MB / 1 ms; without them DDP's
        (A40, sweep_of(BUCKET, OWN, WHOLE), 60, "resident"),
        (A40, sweep_of(BUCKET, WHOLE), 15, "resident"),
        # One message of all gradients, 1.5 · 44.695848 MB / 1 ms
        (DP, sweep_of(WHOLE, BUCKET), 67.043772, "eager"),
    ],
)
def test_the_peak_is_that_of_the_messages_that_a_cell_sends(timing, sweep, peak, engine):
    row = row_of(timing, sweep, engine=engine)
    assert row.peak_gb_per_s == pytest.approx(peak, nan_ok=True)
    assert row.utilization == pytest.approx(row.bandwidth_gb_per_s / peak, nan_ok=True)


def test_gradients_that_are_sent_in_bf16_are_half_the_bytes():
    whole, half = (row_of(A40, sweep_of(WHOLE), sent_share=share) for share in (1.0, 0.5))
    assert half.bytes_per_iteration == pytest.approx(whole.bytes_per_iteration / 2, abs=1)
    assert half.bandwidth_gb_per_s == pytest.approx(whole.bandwidth_gb_per_s / 2)
    # Communication of nothing or less has none.
    for seconds in (4.5, 5.0):
        timing = timing_table(timing_row(1, 512, 20.0), timing_row(4, 512, seconds))
        assert math.isnan(row_of(timing, sweep_of(WHOLE)).bandwidth_gb_per_s)
