"""The table scripts as a rule calls them: folders in, folders out, one sentence if they cannot."""

import json

import pytest

import tables_scaling
from examples import manifests
from examples.records import epochs, record, save
from scaling.core import grid
from scaling.core.errors import UserError
from scaling.core.records import machine
from scaling.tables import schema

GRID = {
    "recipes": {"plain": ["ddp"]},
    "gpus": [1, 4],
    "batch_sizes": [128, 8192],
    "seeds": [0, 1],
}
CELLS = grid.expand(**GRID)
SECONDS = {1: 18.311, 4: 5.023}
PEAKS = {
    "device": "cuda",
    "gpus": 4,
    "cpu_threads": 1,
    "rows": [],
    "environment": {"topology": None},
}


@pytest.fixture
def study(tmp_path):
    """A folder with records: b=128 measured, b=8192 out of memory; no sweep and no peaks."""
    for cell in CELLS:
        if cell.batch_size == 8192:
            made = record(cell, [], status="oom", message="no room")
        else:
            seconds = SECONDS[cell.gpus]
            timed = epochs(cell, seconds + 0.1, seconds, seconds - 0.1)
            made = record(cell, timed, evaluation={"test_loss": 1.0, "test_accuracy": 0.5})
        save(tmp_path / "runs", made)
    machine.PEAKS.write(tmp_path / "peaks.json", PEAKS)
    manifests.write(tmp_path)
    return tmp_path


def tables(folder, *options, **changes):
    """Make the tables of the study in `folder`; returns a function that reads one by its name."""
    made = folder / "tables"
    own = ["--study", "mine", "--tables", str(made)]
    asked = ["--grid", json.dumps(GRID | changes), "--runs", str(folder / "runs"), *options]
    places = ["--cells", str(folder / "cells.csv"), "--peaks", str(folder / "peaks.json")]
    tables_scaling.main([*asked, *own, *places])

    def read(name):
        return schema.read(name, schema.TABLES[name].path(made, "mine"))

    return read


def test_a_cell_without_figures_has_its_row_and_whole_numbers_stay_whole_beside_it(study):
    table = tables(study, "--per-gpu-hour", "3.6")
    money = table("costs").money_per_epoch
    assert money.tolist()[::2] == pytest.approx([18.311e-3, 4 * 5.023e-3])
    assert len(table("accuracy")) == 16  # 4 runs of 3 epochs, and 4 out of memory with one row
    assert table("interconnect").empty and table("bandwidth").peak_gb_per_s.isna().all()
    assert (study / "cells.csv").read_text().splitlines()[1] == "plain,ddp,1,128,0,0"
    lines = (study / "tables/mine/timing.csv").read_text().splitlines()
    assert lines[1] == (
        "plain,ddp,1,128,ok,18.311,18.311,0,"
        f"{18.311 - 0.1!r},{18.311 + 0.1!r},{18.311 - 0.1!r},{18.311 + 0.1!r},6,391,50000,,"
        "2,18.311,18.311,0,0"
    )
    assert lines[2] == "plain,ddp,1,8192,oom,,,,,,,,,,,no room" + "," * 5


def test_a_study_may_lack_records_where_it_is_partial(study):
    for cell in CELLS[4:6]:
        cell.record_path(study / "runs").unlink()
    with pytest.raises(UserError) as refused:
        tables(study)
    assert str(refused.value) == (
        "2 of 8 runs have no record, the first is "
        "plain/ddp, 4 GPUs, batch 128 per GPU, seed 0: see "
        "logs/train_run/recipe~plain/strategy~ddp/gpus~4/batch_size~128/seed~0.log, "
        "run them again, or pass --partial"
    )
    assert not (study / "tables").exists()
    table = tables(study, "--partial", "True")
    assert table("timing").message[2] == "2 of 2 runs have no record"
    for name in ("timing", "speedup", "utilization"):
        assert table(name).status.tolist() == ["ok", "oom", "missing", "oom"]
    for name in ("provenance", "accuracy"):
        assert (table(name).status == "missing").sum() == 2
