"""What an epoch consists of, also with a rank that is slow on purpose; bandwidths; the audit."""

import json
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
from scaling.tables import measurements
from scaling.tables.epoch_parts import audit
from scaling.tables.measurements import costs, device_time, in_memory, peaks, slow_ranks
from scaling.tables.schema import StudyTables
from scaling.tables.timing import timing
from training_runs import run, write_images

ONE = dict(zip(CELL_KEYS, ("plain", "ddp", 2, 512), strict=True))


@pytest.mark.parametrize(("gpus", "known"), [(1, False), (2, False), (4, True)])
def test_nothing_is_subtracted_where_the_gpu_worked_while_its_host_waited(gpus, known):
    """6 s on two GPUs, less half of 9 s without loading."""
    times = timing_table(timing_row(1, 128, 10.0, loader_seconds=1), timing_row(2, 128, 6.0))
    memory = ONE | {"gpus": gpus, "batch_size": 128, "in_memory_epoch_seconds": 9.5}
    found = derived(timing=times, in_memory=[memory]).communication
    (seconds,) = found["communication_seconds"]
    assert seconds == 1.5 if known else math.isnan(seconds)


A40 = timing_table(timing_row(1, 128, 18.311), timing_row(4, 128, 5.023))
DP = A40.assign(strategy="dp")


def sweep_of(*rows, gpus=4, correct=True):
    found = [
        {"kind": kind, "message_bytes": size, "seconds": [seconds], "correct": correct}
        for kind, size, seconds in rows
    ]
    return measurements.interconnect([{"gpus": gpus, "backend": "nccl", "rows": found}])


def row_of(timing, sweep, **cost):
    costs = [timing.iloc[-1][CELL_KEYS].to_dict() | cost]
    tables = derived(timing=timing, interconnect=sweep, costs=costs)
    return next(tables.bandwidth.itertuples())


BUCKET = ("bucket", 10_000_000, 1e-3)
WHOLE = ("gradients", GRADIENT_BYTES, 1e-3)


@pytest.mark.parametrize(
    ("timing", "sweep", "peak"),
    [
        # 30 MB in 1 ms and 10 MB in 1 ms: 1.5 · 40 MB / 2 ms = 30 GB/s (not the mean of 45 and 15)
        (A40, sweep_of(("bucket", 30_000_000, 1e-3), BUCKET, WHOLE), 30),
        # Of another number of GPUs; whose sums were wrong
        (A40, sweep_of(BUCKET, gpus=2), math.nan),
        (A40, sweep_of(BUCKET, correct=False), math.nan),
        # What DataParallel sends, one after the other: 20 MB in 4 ms.
        (DP, sweep_of(WHOLE, ("broadcast", 10**7, 1e-3), ("reduce", 10**7, 3e-3)), 5),
        (DP, sweep_of(WHOLE, BUCKET), math.nan),
    ],
)
def test_the_peak_is_that_of_the_strategys_messages(timing, sweep, peak):
    row = row_of(timing, sweep, engine="eager")
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


# Products of 1000×1000 matrices, 2e9 operations: 100 TFLOP/s in tf32, sustained 80, 400 in bf16.
RATES = [("tf32", [2e-5], "sprint"), ("tf32", [2.5e-5], "sustained"), ("bf16", [5e-6], "sprint")]
PRODUCT = {"quantity": "matrix_product", "matrix_size": 1000}
READ = [dict(zip(("precision", "seconds", "state"), each, strict=True)) for each in RATES]
PEAKS = peaks([{"rows": [PRODUCT | each for each in READ]}])


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


def test_the_idle_part_of_a_users_own_command_is_of_its_whole_epochs():
    cell = Cell("plain", "own", 1, 128, 0)
    made = record(cell, [epoch(n, 10.0, loader_seconds=None) for n in (2, 3, 4)])
    made["training"]["engine"] = "command"
    counted = {"rank": 0, "gpu": 0, "iterations": 10, "seconds": 30.0, "busy_seconds": 24.0}
    runs = [(cell, made | {"device_time": [counted]})]
    found = {make.__name__: make(runs) for make in (timing, costs, device_time)}
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
    options = {"recipe-options": json.dumps({"loader_workers": 0})}
    run(tmp_path, tmp_path / "run.json", engine="delayed", strategy="ddp", gpus=2, **options)
    record = RUN.read(tmp_path / "run.json")
    runs = [(Cell("plain", "ddp", 2, 10, 0), record)]
    found = derived(runs, timing=timing(runs), in_memory=in_memory(runs))
    (parts,) = found.epoch_parts.itertuples()
    # An epoch is two steps: so long it waits for data, and so long it computes.
    assert parts.data_wait_seconds == pytest.approx(2 * DELAY, rel=0.5)
    assert 2 * DELAY < parts.work_seconds < 3.5 * DELAY
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
