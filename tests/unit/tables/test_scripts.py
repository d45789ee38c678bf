"""The table script as a rule calls it: folders in, folders out, one sentence if it cannot."""

import pytest

import tables_make
from examples.records import epochs, record, save
from scaling.core import files, grid
from scaling.core.errors import UserError
from scaling.core.records.experiments import PEAKS as PEAK_RATES
from scaling.tables import schema

GRID = {"recipes": {"plain": ["ddp"]}, "gpus": [1, 4], "batch_sizes": [128, 8192], "seeds": [0, 1]}
CELLS = grid.expand(**GRID)
SECONDS = {1: 18.311, 4: 5.023}
PEAKS = {"device": "cuda", "gpus": 4, "cpu_threads": 1, "rows": []}


def tables(folder, **options):
    """Make the tables of the study in `folder`; returns a function that reads one by its name."""
    own = {"study": "mine", "tables": folder / "tables", **options}
    records = {"peaks": [folder / "peaks.json"]}
    tables_make.main(grid=GRID, runs=folder / "runs", records=records, **own)
    return lambda name: schema.read(name, schema.TABLES[name].path(folder / "tables", "mine"))


def test_partial_study_may_lack_records(tmp_path):
    """b=128 is measured, b=8192 out of memory, two runs have no record; no sweep and no peaks."""
    PEAK_RATES.write(tmp_path / "peaks.json", PEAKS | {"environment": {"hosts": ["vm"]}})
    for cell in [*CELLS[:4], *CELLS[6:]]:
        timed = epochs(cell, *(SECONDS[cell.gpus] + off for off in (0.1, 0, -0.1)))
        ended = {"status": "oom", "message": "no room"} if cell.batch_size == 8192 else {}
        save(tmp_path / "runs", record(cell, [] if ended else timed, **ended))
    where = "plain/ddp, 4 GPUs, batch 128 per GPU, seed 0: see logs/train_run/recipe~plain/.*.log, "
    with pytest.raises(UserError, match=f"^2 of 8 runs have no record, the first is {where}run"):
        tables(tmp_path)
    assert not (tmp_path / "tables").exists()
    table = tables(tmp_path, partial=True, per_gpu_hour=3.6)
    assert table("timing").message[2] == "2 of 2 runs have no record"
    for name in ("timing", "speedup", "utilization"):
        assert table(name).status.tolist() == ["ok", "oom", "missing", "oom"]
    assert table("costs").money_per_epoch[0] == pytest.approx(18.311e-3)
    # 2 runs of 3 epochs; of the others one row each.
    assert len(table("accuracy")) == 12
    assert table("interconnect").empty and table("bandwidth").peak_gb_per_s.isna().all()
    lines = (tmp_path / "tables/mine/timing.csv").read_text().splitlines()
    assert lines[2] == "plain,,1,8192,oom,,,,,,,,,,,no room,,,,False"
    results = files.read_json(tmp_path / "results.json")
    cell = {"recipe": "plain", "strategy": "", "gpus": 1, "batch_size": 128}
    of_cell = {row["quantity"]: row for row in results if row["configuration"] == cell}
    seconds, samples = of_cell["epoch_seconds"], of_cell["samples"]
    assert seconds["value"] == pytest.approx(18.311, 1e-3)
    assert seconds["interval"][0] < 18.311 < seconds["interval"][1] and samples["interval"] is None
    units = [one["unit"] for one in (seconds, samples, of_cell["samples_per_second"])]
    assert units == ["s", "images", "images/s"]
