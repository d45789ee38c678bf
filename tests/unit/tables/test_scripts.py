"""The table scripts as a rule calls them: folders in, folders out, one sentence if they cannot."""

import json

import pytest

import tables_derived
import tables_limits
import tables_runs
from examples import manifests
from examples.records import epochs, record, save
from scaling.core import files, grid
from scaling.core.errors import UserError
from scaling.tables import schema

GRID = {
    "recipes": ["course"],
    "strategies": ["ddp"],
    "gpus": [1, 4],
    "batch_sizes": [128, 8192],
    "seeds": [0, 1],
}
CELLS = grid.expand(**GRID)
SECONDS = {1: 18.311, 4: 5.023}
ITERATIONS = {1: 391, 4: 98}
# 1.5 · 44,695,848 B / 2 ms = 33.521886 GB/s
MESSAGES = [
    *(("bucket", 44_695_848, 2e-3), ("gradients", 44_695_848, 3e-3)),
    *(("sweep", size, 1e-5 + size / 1e10) for size in (10**4, 10**6, 10**8)),
]
ROWS = [
    {"kind": kind, "message_bytes": size, "seconds": [seconds], "correct": True}
    for kind, size, seconds in MESSAGES
]
SWEEP = {"gpus": 4, "backend": "nccl", "rows": ROWS, "environment": {}}
PRODUCT = {"quantity": "matrix_product", "precision": "tf32", "matrix_size": 8192}
PEAKS = {
    "gpus": 4,
    "rows": [PRODUCT | {"seconds": [1e-2, 2e-2]}],
    "environment": {"topology": None},
}


@pytest.fixture
def study(tmp_path):
    """A folder with records: b=128 measured, b=8192 out of memory, a sweep and peaks."""
    for cell in CELLS:
        if cell.batch_size == 8192:
            made = record(cell, [], status="oom", message="no room")
        else:
            seconds = SECONDS[cell.gpus]
            timed = epochs(cell, seconds + 0.1, seconds, seconds - 0.1)
            made = record(cell, timed, evaluation={"test_loss": 1.0, "test_accuracy": 0.5})
        save(tmp_path / "runs", made)
    files.write_json(tmp_path / "sweep.json", SWEEP)
    files.write_json(tmp_path / "peaks.json", PEAKS)
    manifests.write(tmp_path)
    return tmp_path


def tables(folder, *options, sweeps=("sweep.json",), **changes):
    """Make the tables of the study in `folder`; returns a function that reads one by its name."""
    made = folder / "tables"
    own = ["--study", "mine", "--tables", str(made)]
    asked = ["--grid", json.dumps(GRID | changes), "--runs", str(folder / "runs"), *options]
    tables_runs.main([*asked, *own, "--cells", str(folder / "cells.csv")])
    measured = ["--sweeps", *(str(folder / name) for name in sweeps)]
    tables_limits.main([*measured, "--peaks", str(folder / "peaks.json"), *own[2:]])
    tables_derived.main([*own, "--manifest", str(folder / "manifest.json")])

    def read(name):
        return schema.read(name, schema.TABLES[name].path(made, "mine"))

    return read


def test_every_table_follows_from_the_records_the_sweep_and_the_peaks(study):
    table = tables(study)
    for kind in schema.made_by("tables_runs", "tables_limits", "tables_derived"):
        assert table(kind.name).columns.tolist() == list(kind.types)
    times = table("timing")
    assert times.status.tolist() == ["ok", "oom", "ok", "oom"]
    assert times.epoch_seconds.tolist()[::2] == [18.311, 5.023]
    assert times["count"].tolist()[::2] == [6, 6]
    assert table("costs").money_per_epoch.isna().all()
    money = tables(study, "--per-gpu-hour", "3.6")("costs").money_per_epoch
    assert money.tolist()[::2] == pytest.approx([18.311e-3, 4 * 5.023e-3])
    assert table("speedup").speedup[2] == 18.311 / 5.023
    assert table("communication").communication_seconds[0] == 5.023 - 18.311 / 4
    # 98 · 67,043,772 B / 0.44525 s = 14.7564 GB/s of 33.521886 GB/s
    assert table("bandwidth").utilization[0] == pytest.approx(0.440202, abs=1e-6)
    assert table("interconnect_fit").latency_seconds[0] == pytest.approx(1e-5)
    assert table("audit").empty
    assert table("peaks").value[0] == pytest.approx(2 * 8192**3 / 15e-3)
    assert table("utilization").images_per_second[0] == pytest.approx(50_000 / 18.311)
    assert len(table("accuracy")) == 16  # 4 runs of 3 epochs, and 4 out of memory with one row
    assert (study / "cells.csv").read_text().splitlines()[1] == "course,ddp,1,128,0,0"
    lines = (study / "tables/mine/timing.csv").read_text().splitlines()
    # Whole numbers as such, in spite of the empty fields below them.
    assert lines[1] == (
        "course,ddp,1,128,ok,18.311,18.311,0.0,"
        f"{18.311 - 0.1!r},{18.311 + 0.1!r},{18.311 - 0.1!r},{18.311 + 0.1!r},6,391,50000,,"
        "2,18.311,18.311,0.0,18.311,18.311,0.0"
    )
    assert lines[2] == "course,ddp,1,8192,oom,,,,,,,,,,,no room" + "," * 7


def test_a_study_may_lack_records_where_it_is_partial(study):
    for cell in CELLS[4:6]:
        cell.record_path(study / "runs").unlink()
    with pytest.raises(UserError) as refused:
        tables(study)
    assert str(refused.value) == (
        "2 of 8 runs have no record, the first is "
        "course/ddp, 4 GPUs, batch 128 per GPU, seed 0: see "
        "logs/train_run/recipe~course/strategy~ddp/gpus~4/batch_size~128/seed~0.log, "
        "run them again, or pass --partial"
    )
    assert not (study / "tables").exists()
    table = tables(study, "--partial", "yes")
    for name in ("timing", "speedup", "utilization"):
        assert table(name).status.tolist() == ["ok", "oom", "missing", "oom"]
    for name in ("provenance", "accuracy"):
        assert (table(name).status == "missing").sum() == 2


def test_a_record_of_another_run_is_refused(study):
    one, other = CELLS[0], CELLS[4]
    one.record_path(study / "runs").write_bytes(other.record_path(study / "runs").read_bytes())
    with pytest.raises(UserError, match=r"its gpus is 4, that of its folder 1"):
        tables(study)


def test_without_a_sweep_and_on_one_gpu_there_are_bandwidths_of_nothing(study):
    table = tables(study, sweeps=())
    assert table("interconnect").empty and table("interconnect_fit").empty
    rates = table("bandwidth")
    assert rates.bandwidth_gb_per_s.isna().all() and rates.peak_gb_per_s.isna().all()
    assert rates.note.str.contains("size of the gradients unknown").all()
    table = tables(study, sweeps=(), gpus=[1], batch_sizes=[128])
    assert table("speedup").speedup.tolist() == [1.0]
    for name in ("readings", "communication", "bandwidth", "audit"):
        assert table(name).empty
