"""What an epoch consists of, also with a rank that is slow on purpose; bandwidths; the audit."""

import math
from pathlib import Path

import pandas as pd
import pytest

from examples.claim_study import derived
from examples.delayed import DELAY
from examples.records import GRADIENT_BYTES, epoch, record, timing_row, timing_table
from scaling.core.grid import CELL_KEYS, Cell
from scaling.core.records.run import RUN
from scaling.registry import registry
from scaling.tables import measurements, schema
from scaling.tables.epoch_parts import audit, bandwidth
from scaling.tables.measurements import costs, device_time, peaks, slow_ranks
from scaling.tables.schema import StudyTables
from scaling.tables.timing import provenance, timing
from training_runs import run, write_images

ONE = dict(zip(CELL_KEYS, ("plain", "ddp", 2, 512), strict=True))


A40 = timing_table(timing_row(1, 128, 18.311), timing_row(4, 128, 5.023))
DP = A40.assign(strategy="dp")


def sweep_of(*rows, gpus=4, correct=True, machine="m"):
    found = [
        {"kind": kind, "message_bytes": size, "seconds": [seconds], "correct": correct}
        for kind, size, seconds in rows
    ]
    sweep = {"gpus": gpus, "backend": "nccl", "rows": found}
    return measurements.interconnect([sweep | {"environment": {"machine": machine}}])


def row_of(timing, sweep, message_bytes="30000000 10000000", **cost):
    """The bandwidth of the last row, whose messages take 0.02 s an epoch."""
    cost["message_bytes"] = message_bytes
    cell = timing.iloc[-1][CELL_KEYS].to_dict()
    tables = derived(timing=timing, interconnect=sweep, costs=[cell | cost])
    messages = schema.frame("communication", [cell | {"messages_seconds": 0.02}])
    made = bandwidth(StudyTables("example", {**tables.found, "communication": messages}))
    return next(made.itertuples())


BUCKETS = ("bucket", 30_000_000, 1e-3), ("tuned_bucket", 10_000_000, 1e-3)
WHOLE = ("gradients", GRADIENT_BYTES, 1e-3)


@pytest.mark.parametrize(
    ("timing", "sweep", "peak"),
    [
        # 30 MB in 1 ms and 10 MB in 1 ms: 1.5 · 40 MB / 2 ms = 30 GB/s (not the mean of 45 and 15)
        (A40, sweep_of(*BUCKETS, WHOLE), 30),
        # Of another size, machine, or number of GPUs; whose sums were wrong
        (A40, sweep_of(BUCKETS[0], ("bucket", 9_000_000, 1e-3), WHOLE), math.nan),
        (A40, sweep_of(*BUCKETS, machine="other"), math.nan),
        (A40, sweep_of(*BUCKETS, gpus=2), math.nan),
        (A40, sweep_of(*BUCKETS, correct=False), math.nan),
        # What DataParallel sends, one after the other: 20 MB in 4 ms.
        (DP, sweep_of(WHOLE, ("broadcast", 10**7, 1e-3), ("reduce", 10**7, 3e-3)), 5),
        (DP, sweep_of(WHOLE, *BUCKETS), math.nan),
    ],
)
def test_the_peak_is_that_of_messages_of_equal_sizes(timing, sweep, peak):
    row = row_of(timing, sweep, engine="eager")
    assert row.peak_gb_per_s == pytest.approx(peak, nan_ok=True)
    assert row.utilization == pytest.approx(row.bandwidth_gb_per_s / peak, nan_ok=True)


@pytest.mark.parametrize(("recorded", "sent"), [([64, 48], "32 24"), ([40, 16], "40 16")])
def test_messages_of_half_the_bytes_are_as_they_are_sent(recorded, sent):
    """Some records have float32 buckets of 100 bytes of gradients with padding, some bytes sent."""
    made = record(cell := Cell("tuned", "ddp", 2, 128, 0), [epoch(1, 10.0)])
    made["model"]["gradient_bytes"] = 100
    made["communication"] |= {"bucket_bytes": recorded, "sent_share": 0.5}
    assert costs([(cell, made)])["message_bytes"].tolist() == [sent]


def test_gradients_that_are_sent_in_bf16_are_half_the_bytes():
    whole, half = (row_of(A40, sweep_of(WHOLE), sent_share=share) for share in (1.0, 0.5))
    assert half.bytes_per_iteration == pytest.approx(whole.bytes_per_iteration / 2, abs=1)
    assert half.bandwidth_gb_per_s == pytest.approx(whole.bandwidth_gb_per_s / 2)


# Products of 1000×1000 matrices, 2e9 operations: 100 TFLOP/s in tf32, sustained 80, 400 in bf16.
RATES = [("tf32", [2e-5], "sprint"), ("tf32", [2.5e-5], "sustained"), ("bf16", [5e-6], "sprint")]
PRODUCT = {"quantity": "matrix_product", "matrix_size": 1000}
READ = [dict(zip(("precision", "seconds", "state"), each, strict=True)) for each in RATES]
PEAKS = peaks([{"environment": {"machine": "m"}, "rows": [PRODUCT | each for each in READ]}])


@pytest.mark.parametrize(
    ("precision", "flops", "share"),
    [
        # 50,000 images in 10 s: 20 TFLOP/s.
        ("bf16", 4e9, 0.05),
        ("tf32", 4e9, 0.2),
        ("tf32", None, math.nan),
        ("", 4e9, math.nan),
        ("float32", 4e9, math.nan),
    ],
)
def test_the_peak_is_that_of_the_precision(precision, flops, share):
    cost = ONE | {"gpus": 1, "batch_size": 128, "precision": precision, "flops_per_image": flops}
    table = derived(timing=[timing_row(1, 128, 10.0)], peaks=PEAKS, costs=[cost]).utilization
    assert table["utilization"][0] == pytest.approx(share, nan_ok=True)


def test_a_peak_of_another_machine_is_none():
    cost = ONE | {"gpus": 1, "batch_size": 128, "precision": "tf32", "flops_per_image": 4e9}
    other = PEAKS.assign(machine="other")
    table = derived(timing=[timing_row(1, 128, 10.0)], peaks=other, costs=[cost]).utilization
    assert math.isnan(table["utilization"][0]) and math.isnan(table["peak_flops_per_second"][0])


def test_the_parts_of_an_epoch_are_of_busy_seconds_and_waits():
    """196 steps of 40 ms, of which 30 ms compute and 2 of messages are exposed, in 10 s."""
    timing = timing_table(timing_row(2, 128, 10.0, loader_seconds=1.5))
    step = {"step_seconds": 0.04, "busy_seconds": 0.032, "compute_seconds": 0.03}
    cell = ONE | {"batch_size": 128}
    tables = derived(timing=timing, device_time=[cell | step], costs=[cell])
    (row,) = tables.utilization.itertuples()
    assert row.idle_share == pytest.approx(1 - 0.032 * 196 / 10)
    assert row.loading_share == pytest.approx(0.15)
    assert row.idle_besides_share == pytest.approx(row.idle_share - 0.15)
    assert row.communication_share == pytest.approx(0.0392)
    assert row.slower_share == pytest.approx(0.588) and row.unknown_share == pytest.approx(0)


def test_the_idle_part_of_a_users_own_command_is_of_its_whole_epochs():
    cell = Cell("plain", "own", 1, 128, 0)
    made = record(cell, [epoch(n, 10.0, loader_seconds=None) for n in (2, 3, 4)])
    made["training"] |= {"engine": "command", "command": "train", "recipe_options": {}}
    counted = {"rank": 0, "gpu": 0, "iterations": 10, "seconds": 30.0, "busy_seconds": 24.0}
    runs = [(cell, made | {"device_time": [counted]})]
    found = {make.__name__: make(runs) for make in (timing, costs, device_time, provenance)}
    (row,) = derived(**found).utilization.itertuples()
    assert row.idle_share == pytest.approx(0.2) and row.unknown_share == pytest.approx(0.8)
    assert math.isnan(row.loading_share)


# It times this machine, so what else runs on it may disturb one try, hardly three.
@pytest.mark.flaky(reruns=2)
def test_a_rank_that_loads_and_computes_longer_is_found_although_epochs_are_equally_long(
    tmp_path, monkeypatch, torch
):
    """Of two processes, the second takes `DELAY` longer for each batch, and again for each step."""
    monkeypatch.setenv(registry.VARIABLE, str(Path(__file__).parents[2] / "examples/delayed.py"))
    write_images(tmp_path)
    options = {"recipe_options": {"loader_workers": 0}}
    run(tmp_path, tmp_path / "run.json", engine="delayed", strategy="ddp", gpus=2, **options)
    record = RUN.read(tmp_path / "run.json")
    runs = [(Cell("plain", "ddp", 2, 10, 0), record)]
    (row,) = timing(runs).itertuples()
    # An epoch is two steps: so long it waits for data, and so long it computes.
    assert row.epoch_seconds - row.training_seconds == pytest.approx(2 * DELAY, rel=0.5)
    assert 2 * DELAY < row.training_seconds < 3.5 * DELAY
    (told,) = slow_ranks(runs).itertuples()
    assert told.message.startswith("rank 1 computes ") and told.found > 0.5
    both = [[row["seconds"] for row in record["epochs"] if row["rank"] == r] for r in (0, 1)]
    assert both[0] == pytest.approx(both[1], rel=0.25)


def test_an_epoch_takes_at_least_the_time_of_its_operations_at_the_peak():
    used = pd.DataFrame([ONE | {"utilization": 0.4}, ONE | {"utilization": 1.6}])
    slow = pd.DataFrame([ONE | {"message": "rank 1 is slow", "found": 0.25, "expected": 0.05}])
    table = audit(StudyTables("example", {"utilization": used}), slow)
    assert table["found"].tolist() == [0.25, 1.6]
    assert table["message"][1].startswith("the epoch took less time than its operations")
    assert audit(StudyTables("example", {"utilization": used[:1]}), slow[:0]).empty
