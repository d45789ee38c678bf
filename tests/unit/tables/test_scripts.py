"""The table scripts as a rule calls them: folders in, folders out, one sentence if they cannot."""

import json
from pathlib import Path

import pandas as pd
import pytest

import tables_derived
import tables_limits
import tables_runs
from examples.records import epoch, record, save
from scaling.core import files
from scaling.core.errors import UserError
from scaling.core.grid import Cell
from scaling.tables import schema

GRID = {
    "recipes": ["course"],
    "strategies": ["ddp"],
    "gpus": [1, 4],
    "batch_sizes": [128, 8192],
    "seeds": [0, 1],
}
CELLS = [
    Cell("course", "ddp", gpus, size, seed)
    for gpus in (1, 4)
    for size in (128, 8192)
    for seed in (0, 1)
]
SECONDS = {1: 18.311, 4: 5.023}
ITERATIONS = {1: 391, 4: 98}
SWEEP = {
    "gpus": 4,
    "backend": "nccl",
    # 1.5 · 44,695,848 B / 2 ms = 33.521886 GB/s
    "rows": [
        {"kind": "bucket", "message_bytes": 44_695_848, "seconds": [2e-3], "correct": True},
        {"kind": "gradients", "message_bytes": 44_695_848, "seconds": [3e-3], "correct": True},
        *(
            {"kind": "sweep", "message_bytes": m, "seconds": [1e-5 + m / 1e10], "correct": True}
            for m in (10**4, 10**6, 10**8)
        ),
    ],
}


PEAKS = {
    "rows": [{"quantity": "matrix_product", "precision": "tf32", "matrix_size": 8192}],
    "environment": {"topology": None},
}
PEAKS["rows"][0]["seconds"] = [1e-2, 2e-2]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A folder with records: b=128 measured, b=8192 out of memory, a sweep and peaks."""
    for cell in CELLS:
        if cell.batch_size == 8192:
            made = record(cell, [], status="oom", message="no room")
        else:
            epochs = [
                epoch(
                    number,
                    SECONDS[cell.gpus] + delta,
                    rank=rank,
                    iterations=ITERATIONS[cell.gpus],
                    samples=50_000 // cell.gpus,
                )
                for number, delta in ((2, 0.1), (3, 0.0), (4, -0.1))
                for rank in range(cell.gpus)
            ]
            made = record(cell, epochs, evaluation={"test_loss": 1.0, "test_accuracy": 0.5})
        save(tmp_path / "runs", made)
    files.write_json(tmp_path / "sweep.json", SWEEP)
    files.write_json(tmp_path / "peaks.json", PEAKS)
    files.write_json(tmp_path / "manifest.json", {"train_images": 50_000})
    return tmp_path


def tables(folder: Path, *options: str, sweeps: tuple[str, ...] = ("sweep.json",), **grid) -> Path:
    """Make the tables of the study in `folder`; returns their folder."""
    made = folder / "tables"
    tables_runs.main(
        [
            *("--grid", json.dumps(GRID | grid), "--runs", str(folder / "runs"), *options),
            *("--study", "mine", "--tables", str(made), "--cells", str(folder / "cells.csv")),
        ]
    )
    tables_limits.main(
        [
            *("--sweeps", *(str(folder / name) for name in sweeps)),
            *("--peaks", str(folder / "peaks.json"), "--tables", str(made)),
        ]
    )
    tables_derived.main(
        [
            *("--study", "mine", "--tables", str(made)),
            *("--manifest", str(folder / "manifest.json")),
        ]
    )
    return made


def table(made: Path, name: str) -> pd.DataFrame:
    return schema.read(name, schema.TABLES[name].path(made, "mine"))


def test_every_table_follows_from_the_records_the_sweep_and_the_peaks(study: Path):
    made = tables(study)
    for rule in ("tables_runs", "tables_limits", "tables_derived"):
        for kind in schema.made_by(rule):
            assert table(made, kind.name).columns.tolist() == kind.columns
    times = table(made, "timing")
    assert times.status.tolist() == ["ok", "oom", "ok", "oom"]
    assert times.epoch_seconds.tolist()[::2] == [18.311, 5.023]
    assert times["count"].tolist()[::2] == [6, 6]
    assert table(made, "speedup").speedup[2] == 18.311 / 5.023
    assert table(made, "communication").communication_seconds[0] == 5.023 - 18.311 / 4
    # 98 · 67,043,772 B / 0.44525 s = 14.7564 GB/s of 33.521886 GB/s
    assert table(made, "bandwidth").utilization[0] == pytest.approx(0.440202, abs=1e-6)
    assert table(made, "interconnect_fit").latency_seconds[0] == pytest.approx(1e-5)
    assert table(made, "audit").empty
    assert table(made, "peaks").value[0] == pytest.approx(2 * 8192**3 / 15e-3)
    assert table(made, "utilization").images_per_second[0] == pytest.approx(50_000 / 18.311)
    assert (study / "cells.csv").read_text().splitlines()[1] == "course,ddp,1,128,0"


def test_timing_csv_reads_as_its_contract_says(study: Path):
    lines = (tables(study) / "mine/timing.csv").read_text().splitlines()
    assert lines[0] == (
        "recipe,strategy,gpus,batch_size,status,epoch_seconds,epoch_seconds_without_loading,"
        "loader_seconds,epoch_seconds_min,epoch_seconds_max,epoch_seconds_without_loading_min,"
        "epoch_seconds_without_loading_max,count,iterations,samples,message"
    )
    # Whole numbers as such, in spite of the empty fields below them.
    assert lines[1] == (
        "course,ddp,1,128,ok,18.311,18.311,0.0,"
        f"{18.311 - 0.1!r},{18.311 + 0.1!r},{18.311 - 0.1!r},{18.311 + 0.1!r},6,391,50000,"
    )
    assert lines[2] == "course,ddp,1,8192,oom,,,,,,,,,,,no room"


def test_missing_records_are_named_with_the_first_ones_log(study: Path):
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


def test_a_partial_study_keeps_the_cells_that_have_no_record_yet(study: Path):
    for cell in CELLS[4:6]:
        cell.record_path(study / "runs").unlink()
    made = tables(study, "--partial")
    for name in ("timing", "speedup", "utilization"):
        assert table(made, name).status.tolist() == ["ok", "oom", "missing", "oom"]
    for name in ("provenance", "accuracy"):
        assert (table(made, name).status == "missing").sum() == 2


def test_a_record_of_another_run_is_refused(study: Path):
    one, other = CELLS[0], CELLS[4]
    one.record_path(study / "runs").write_bytes(other.record_path(study / "runs").read_bytes())
    with pytest.raises(
        UserError, match=r"is the record of .*'gpus': 4.*, not of course/ddp, 1 GPU"
    ):
        tables(study)


def test_without_any_sweep_there_are_bandwidths_neither_of_links_nor_of_cells(study: Path):
    made = tables(study, sweeps=())
    assert table(made, "interconnect").empty and table(made, "interconnect_fit").empty
    rates = table(made, "bandwidth")
    assert rates.bandwidth_gb_per_s.isna().all() and rates.peak_gb_per_s.isna().all()
    assert rates.note.str.contains("size of the gradients unknown").all()


def test_a_study_of_one_gpu_only_has_no_communication_and_no_findings(study: Path):
    made = tables(study, sweeps=(), gpus=[1], batch_sizes=[128])
    assert table(made, "speedup").speedup.tolist() == [1.0]
    for name in ("readings", "communication", "bandwidth", "audit"):
        assert table(made, name).empty
