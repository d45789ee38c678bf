"""The table scripts as a rule calls them: files in, files out, one sentence when it cannot be."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import tables_accuracy
import tables_audit
import tables_bandwidth
import tables_communication
import tables_interconnect
import tables_provenance
import tables_speedup
import tables_timing
from examples.records import epoch, record, save
from scaling.core import files, grid
from scaling.core.errors import UserError
from scaling.core.grid import Cell
from scaling.tables import bandwidth, communication, interconnect, io, speedup, timing

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


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A folder with cells.csv, runs/ and sweep.json: b=128 measured, b=8192 out of memory."""
    grid.write_table(CELLS, tmp_path / "cells.csv")
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
    return tmp_path


def run(main, folder: Path, *options: str, **paths: str) -> None:
    """Call a script with `options`, and with --name folder/file for each of `paths`."""
    located = [part for name, file in paths.items() for part in (f"--{name}", str(folder / file))]
    main([*options, *located])


def test_every_table_follows_from_the_records_and_the_sweep(study: Path):
    run(tables_timing.main, study, cells="cells.csv", runs="runs", output="timing.csv")
    run(tables_speedup.main, study, timing="timing.csv", output="speedup.csv")
    run(tables_communication.main, study, timing="timing.csv", output="communication.csv")
    run(tables_interconnect.main, study, sweeps="sweep.json", output="net.csv", fit="fit.csv")
    run(
        tables_bandwidth.main,
        study,
        timing="timing.csv",
        communication="communication.csv",
        interconnect="net.csv",
        output="bandwidth.csv",
    )
    run(
        tables_audit.main,
        study,
        *("--train-images", "50000"),
        timing="timing.csv",
        speedup="speedup.csv",
        communication="communication.csv",
        bandwidth="bandwidth.csv",
        output="audit.csv",
    )

    times = io.read(study / "timing.csv", timing.COLUMNS)
    assert times.status.tolist() == ["ok", "oom", "ok", "oom"]
    assert times.epoch_seconds.tolist()[::2] == [18.311, 5.023]
    assert times["count"].tolist()[::2] == [6, 6]
    assert io.read(study / "speedup.csv", speedup.COLUMNS).speedup[2] == 18.311 / 5.023
    parts = io.read(study / "communication.csv", communication.COLUMNS)
    assert parts.communication_seconds[0] == 5.023 - 18.311 / 4
    rates = io.read(study / "bandwidth.csv", bandwidth.COLUMNS)
    # 98 · 67,043,772 B / 0.44525 s = 14.7564 GB/s of 33.521886 GB/s
    assert rates.utilization[0] == pytest.approx(0.440202, abs=1e-6)
    fitted = io.read(study / "fit.csv", interconnect.FIT_COLUMNS)
    assert fitted.latency_seconds[0] == pytest.approx(1e-5)
    assert pd.read_csv(study / "audit.csv").empty


def test_timing_csv_reads_as_its_contract_says(study: Path):
    run(tables_timing.main, study, cells="cells.csv", runs="runs", output="timing.csv")
    lines = (study / "timing.csv").read_text().splitlines()
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


def test_accuracy_and_provenance_have_a_row_for_every_run(study: Path):
    run(
        tables_accuracy.main,
        study,
        *("--study", "measured"),
        cells="cells.csv",
        runs="runs",
        output="accuracy.csv",
    )
    run(tables_provenance.main, study, cells="cells.csv", runs="runs", output="provenance.csv")
    accuracies = pd.read_csv(study / "accuracy.csv")
    # 4 runs of 3 epochs, and 4 out of memory with one row each
    assert len(accuracies) == 16
    assert set(accuracies.study) == {"measured"}
    assert accuracies.test_accuracy.notna().sum() == 4
    assert pd.read_csv(study / "provenance.csv").status.tolist() == ["ok", "ok", "oom", "oom"] * 2


def test_a_missing_record_stops_the_script_with_one_sentence_and_status_1(study: Path):
    for cell in CELLS[4:6]:
        cell.record_path(study / "runs").unlink()
    script = Path(tables_timing.__file__)
    options = [
        "--cells",
        study / "cells.csv",
        "--runs",
        study / "runs",
        "--output",
        study / "t.csv",
    ]
    ended = subprocess.run(
        [sys.executable, script, *options], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert ended.stderr == (
        "error: 2 of 8 runs have no record, the first is "
        "course/ddp, 4 GPUs, batch 128 per GPU, seed 0: see "
        "logs/train_run/recipe~course/strategy~ddp/gpus~4/batch_size~128/seed~0.log, "
        "run them again, or pass --partial\n"
    )
    assert not (study / "t.csv").exists()


def test_a_partial_study_keeps_the_cells_that_have_no_record_yet(study: Path):
    for cell in CELLS[4:6]:
        cell.record_path(study / "runs").unlink()
    sources = {"cells": "cells.csv", "runs": "runs"}
    run(tables_timing.main, study, "--partial", **sources, output="timing.csv")
    run(tables_provenance.main, study, "--partial", **sources, output="provenance.csv")
    run(
        tables_accuracy.main,
        study,
        *("--partial", "--study", "measured"),
        **sources,
        output="accuracy.csv",
    )
    run(tables_speedup.main, study, timing="timing.csv", output="speedup.csv")
    for name in ("timing", "speedup"):
        table = pd.read_csv(study / f"{name}.csv")
        assert table.status.tolist() == ["ok", "oom", "missing", "oom"]
    for name in ("provenance", "accuracy"):
        assert (pd.read_csv(study / f"{name}.csv").status == "missing").sum() == 2


def test_a_record_of_another_run_is_refused(study: Path):
    one, other = CELLS[0], CELLS[4]
    one.record_path(study / "runs").write_bytes(other.record_path(study / "runs").read_bytes())
    with pytest.raises(
        UserError, match=r"is the record of .*'gpus': 4.*, not of course/ddp, 1 GPU"
    ):
        run(tables_timing.main, study, cells="cells.csv", runs="runs", output="timing.csv")


def test_without_any_sweep_the_interconnect_tables_are_only_headers(tmp_path: Path):
    tables_interconnect.main(
        ["--output", str(tmp_path / "net.csv"), "--fit", str(tmp_path / "fit.csv"), "--sweeps"]
    )
    assert io.read(tmp_path / "net.csv", interconnect.COLUMNS).empty
    assert io.read(tmp_path / "fit.csv", interconnect.FIT_COLUMNS).empty


def test_a_study_without_sweep_has_bandwidths_without_peak(study: Path):
    run(tables_timing.main, study, cells="cells.csv", runs="runs", output="timing.csv")
    run(tables_communication.main, study, timing="timing.csv", output="communication.csv")
    io.write(interconnect.interconnect([]), study / "net.csv")
    run(
        tables_bandwidth.main,
        study,
        *("--gradient-bytes", "44695848"),
        timing="timing.csv",
        communication="communication.csv",
        interconnect="net.csv",
        output="bandwidth.csv",
    )
    table = pd.read_csv(study / "bandwidth.csv")
    assert table.bandwidth_gb_per_s[0] == pytest.approx(14.7564, abs=1e-4)
    assert table.peak_gb_per_s.isna().all()
    assert table.bytes_per_epoch.tolist()[0] == 98 * 67_043_772


def test_a_study_of_one_gpu_only_has_no_communication_and_no_findings(tmp_path: Path):
    cells = [Cell("course", "ddp", 1, 128, 0)]
    grid.write_table(cells, tmp_path / "cells.csv")
    save(tmp_path / "runs", record(cells[0], [epoch(n, 18.0) for n in (2, 3, 4)]))
    io.write(interconnect.interconnect([]), tmp_path / "net.csv")
    files.write_json(tmp_path / "manifest.json", {"train_images": 50_000})
    run(tables_timing.main, tmp_path, cells="cells.csv", runs="runs", output="timing.csv")
    run(tables_speedup.main, tmp_path, timing="timing.csv", output="speedup.csv")
    run(tables_communication.main, tmp_path, timing="timing.csv", output="communication.csv")
    run(
        tables_bandwidth.main,
        tmp_path,
        timing="timing.csv",
        communication="communication.csv",
        interconnect="net.csv",
        output="bandwidth.csv",
    )
    run(
        tables_audit.main,
        tmp_path,
        timing="timing.csv",
        speedup="speedup.csv",
        communication="communication.csv",
        bandwidth="bandwidth.csv",
        manifest="manifest.json",
        output="audit.csv",
    )
    assert pd.read_csv(tmp_path / "speedup.csv").speedup.tolist() == [1.0]
    for name in ("communication", "bandwidth", "audit"):
        assert pd.read_csv(tmp_path / f"{name}.csv").empty


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "does not exist"),
        ("", "is not a CSV table"),
        ("recipe,strategy\ncourse,ddp\n", "has no column gpus, batch_size, status"),
    ],
)
def test_a_broken_table_is_named(tmp_path: Path, content: str | None, sentence: str):
    path = tmp_path / "timing.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UserError, match=rf"{path} {sentence}"):
        run(tables_speedup.main, tmp_path, timing="timing.csv", output="speedup.csv")


def test_names_like_a_number_or_like_nothing_are_kept(tmp_path: Path):
    table = pd.DataFrame({"recipe": ["007", "1e3"], "strategy": ["NA", "null"], "count": [1, 2]})
    io.write(table, tmp_path / "table.csv")
    back = io.read(tmp_path / "table.csv", ["recipe"])
    assert back.recipe.tolist() == ["007", "1e3"]
    assert back.strategy.tolist() == ["NA", "null"]


def test_every_digit_of_a_time_survives_the_file(tmp_path: Path):
    seconds = [0.1 + 0.2, 2.5e-5 / 3, *(n / 7919 for n in range(2000))]
    io.write(pd.DataFrame({"seconds": seconds}), tmp_path / "table.csv")
    assert io.read(tmp_path / "table.csv", ["seconds"]).seconds.tolist() == seconds
