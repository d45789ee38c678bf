"""Parts of an epoch, bandwidths, and the audit."""

import math

import pandas as pd
import pytest

from examples import stored
from examples.records import GRADIENT_BYTES, derived, epoch, record, timing_row, timing_table
from scaling.claims.scaling import PARTS
from scaling.core.grid import CELL_KEYS, Cell
from scaling.tables import measurements, schema
from scaling.tables.epoch_parts import audit, bandwidth, utilization
from scaling.tables.measurements import peaks, slow_ranks
from scaling.tables.schema import StudyTables

SECONDS = ["epoch_seconds", "exposed_seconds"]
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
def test_peak_is_of_messages_of_equal_sizes(timing, sweep, peak):
    cell = timing.iloc[-1][CELL_KEYS].to_dict()
    cost = cell | {"engine": "eager", "message_bytes": "30000000 10000000"}
    tables = derived(timing=timing, interconnect=sweep, costs=[cost])
    messages = schema.frame("communication", [cell | {"messages_seconds": 0.02}])
    made = bandwidth(StudyTables("example", {**tables.found, "communication": messages}))
    row = next(made.itertuples())
    assert row.peak_gb_per_s == pytest.approx(peak, nan_ok=True)
    assert row.utilization == pytest.approx(row.bandwidth_gb_per_s / peak, nan_ok=True)


# Products of 1000×1000 matrices, 2e9 operations: 100 TFLOP/s in tf32, sustained 80, 400 in bf16.
RATES = [("tf32", [2e-5], "sprint"), ("tf32", [2.5e-5], "sustained"), ("bf16", [5e-6], "sprint")]
PRODUCT = {"quantity": "matrix_product", "matrix_size": 1000}
READ = [dict(zip(("precision", "seconds", "state"), each, strict=True)) for each in RATES]
PEAKS = peaks([{"environment": {"machine": "m"}, "rows": [PRODUCT | each for each in READ]}])


@pytest.mark.parametrize(
    ("precision", "flops", "machine", "share"),
    [
        # 50,000 images in 10 s: 20 TFLOP/s.
        ("bf16", 4e9, "m", 0.05),
        ("tf32", 4e9, "m", 0.2),
        ("tf32", None, "m", math.nan),
        ("float32", 4e9, "m", math.nan),
        ("tf32", 4e9, "other", math.nan),
    ],
)
def test_peak_is_of_the_precision_and_machine(precision, flops, machine, share):
    cost = ONE | {"gpus": 1, "batch_size": 128, "precision": precision, "flops_per_image": flops}
    limits = {"peaks": PEAKS.assign(machine=machine), "costs": [cost]}
    table = derived(timing=[timing_row(1, 128, 10.0)], **limits).utilization
    assert table["utilization"][0] == pytest.approx(share, nan_ok=True)


@pytest.mark.parametrize("traced", [True, False])
def test_exposed_messages_are_apart_from_waits_for_ranks(traced):
    """A step of 40 ms computes for 30 ms. It has exposed messages of 5 ms on rank 0, 2 ms on 1."""
    timing = timing_table(timing_row(2, 128, 10.0, loader_seconds=1.5))
    step = {"step_seconds": 0.04, "step_busy_seconds": 0.035, "step_compute_seconds": 0.03}
    cell, run = ONE | {"batch_size": 128}, Cell("plain", "ddp", 2, 128, 0)
    read = {"estimate": "profiler", "iterations": 10, "communication_seconds": 1}
    readings = [read | {"exposed_seconds": seconds} for seconds in (0.05, 0.02)]
    made = record(run, [epoch(2, 10.0)])
    made["communication"]["readings"] = readings * traced
    tables = derived([(run, made)], timing=timing, costs=[cell | step])
    (row,) = tables.utilization.itertuples()
    assert measurements.costs([(run, made)])["message_waits"].item() is traced
    # No peak is known, so all kernels count.
    assert row.loading_share == pytest.approx(0.15) and math.isnan(row.slower_share)
    assert row.computing_share == pytest.approx(0.588)
    assert row.idle_share == pytest.approx(1 - 0.035 * 196 / 10)
    assert row.idle_besides_share == pytest.approx(row.idle_share - 0.15)
    shares = row.exposed_share, row.waiting_share, row.unknown_share
    expected = (0.0392, 0.0588, 0) if traced else (math.nan, math.nan, 0.098)
    assert shares == pytest.approx(expected, nan_ok=True, abs=1e-9)


@pytest.mark.parametrize(("engine", "share"), [("eager", 0.2), ("resident", 0.01)])
def test_data_wait_without_loader_processes_is_the_hosts(engine, share):
    timed = timing_row(1, 128, 10.0, training_seconds=8.0, loader_seconds=0.1, runs=1)
    costs = [ONE | {"gpus": 1, "batch_size": 128, "engine": engine}]
    found = derived(timing=[timed], costs=costs).utilization["loading_share"].item()
    assert found == pytest.approx(share)


def test_data_wait_on_one_machine_is_of_its_run():
    tables = stored.study("h200x2")
    cell = "recipe == 'plain' and batch_size == 64 and strategy == 'ddp'"
    (run,) = tables.provenance.query(cell).dropna(subset="epoch_seconds").itertuples()
    (used,) = tables.utilization.query(cell).itertuples()
    wait = run.epoch_seconds - run.training_seconds
    assert used.loading_share == pytest.approx(wait / run.epoch_seconds)
    assert tables.timing.query(cell)["epoch_seconds"].item() > 1.1 * run.epoch_seconds


@pytest.mark.parametrize("name", ["h200x2", "h200x2-models", "h200x4", "cpu"])
def test_parts_add_up_to_the_epoch(name):
    tables = stored.study(name)
    seconds = tables.communication[[*CELL_KEYS, *SECONDS]]
    used = utilization(tables).merge(seconds, "left", CELL_KEYS)
    timed = used[used["unknown_share"].notna()]
    assert timed[list(PARTS)].sum(axis=1).tolist() == pytest.approx([1] * len(timed))
    assert timed[list(PARTS)].min().min() >= 0
    seconds = used["exposed_share"] * used["epoch_seconds"]
    assert (seconds / used["exposed_seconds"]).dropna().between(0.9, 1.000001).all()


def test_slow_rank_is_slower_than_all_others_on_each_machine():
    cell, ran = Cell("plain", "ddp", 3, 128, 0), []
    for speed in (1.0, 1.3, 0.8):
        measured = [
            {"rank": rank, "iterations": 10, "samples": 2560, "seconds": [1.0, 1.0]}
            | {"seconds_without_exchange": [speed * one for one in seconds]}
            for rank, seconds in enumerate([[1.0, 1.1], [1.3, 1.4], [1.0, 1.05]])
        ]
        ran.append((cell, record(cell, [epoch(2, 10.0)], in_memory=measured)))
    assert slow_ranks(ran)["message"].tolist() == ["rank 1 computes 32 % slower than the others"]
    # Blocks that overlap with another rank's are noise.
    measured[1]["seconds_without_exchange"] = [0.84, 1.12]
    assert slow_ranks(ran).empty


def test_epoch_faster_than_its_operations_is_a_finding():
    used = pd.DataFrame([ONE | {"utilization": 0.4}, ONE | {"utilization": 1.6}])
    slow = pd.DataFrame([ONE | {"message": "rank 1 is slow"}])
    table = audit(StudyTables("example", {"utilization": used}), slow)
    assert table["message"][0] == "rank 1 is slow"
    assert table["message"][1].startswith("160 % of the measured peak: the epoch took less time")
    assert audit(StudyTables("example", {"utilization": used[:1]}), slow[:0]).empty
