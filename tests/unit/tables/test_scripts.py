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
    own = {"study": "mine", "tables": folder / "tables", "grid": GRID, **options}
    tables_make.main(runs=folder / "runs", **own)
    return lambda name: schema.read(name, schema.TABLES[name].path(folder / "tables", "mine"))


def test_partial_study_may_lack_records(tmp_path):
    """b=128 is measured, b=8192 out of memory, two runs have no record; no sweep and no peaks."""
    PEAK_RATES.write(tmp_path / "peaks.json", PEAKS | {"environment": {"hosts": ["vm"]}})
    for cell in [*CELLS[:4], *CELLS[6:]]:
        timed = epochs(cell, *(SECONDS[cell.gpus] + off for off in (0.1, 0, -0.1)))
        test = {"test_loss": 1.0, "test_accuracy": 0.8 + 0.02 * cell.seed}
        ended = {"status": "oom", "message": "no room"} if cell.batch_size == 8192 else {}
        save(tmp_path / "runs", record(cell, [] if ended else timed, evaluation=test, **ended))
    where = "plain/ddp, 4 GPUs, batch 128 per GPU, seed 0: see logs/train_run/recipe~plain/.*.log, "
    with pytest.raises(UserError, match=f"^2 of 8 runs have no record, the first is {where}run"):
        tables(tmp_path)
    assert not (tmp_path / "tables").exists()
    records = {"peaks": [tmp_path / "peaks.json"]}
    table = tables(tmp_path, partial=True, per_gpu_hour=3.6, records=records)
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
    assert "verdict" not in of_cell and of_cell["train_loss"]["value"] == 1.5
    # Student's t of two seeds, of which each is 0.01 from their mean.
    assert of_cell["test_accuracy"]["value"] == pytest.approx(0.81)
    assert of_cell["test_accuracy"]["interval"][1] == pytest.approx(0.81 + 12.7062 * 0.01)


def test_results_have_verdicts_and_strong_scaling(tmp_path):
    own = GRID | {"batch_sizes": [32, 128]}
    for cell in grid.expand(**own):
        save(tmp_path / "runs", record(cell, epochs(cell, *[100 / cell.gpus + cell.seed] * 3)))
    tables(tmp_path, grid=own)
    rows = files.read_json(tmp_path / "results.json")
    cell = {"recipe": "plain", "strategy": "ddp", "gpus": 4}
    rows = [row for row in rows if cell.items() <= row["configuration"].items()]
    known = {(row["configuration"]["batch_size"], row["quantity"]): row for row in rows}
    assert known[128, "verdict"]["value"] == "faster"
    assert (32, "fixed_global_batch_speedup") in known
    speedup, efficiency = known[128, "speedup"], known[128, "efficiency"]
    assert efficiency["interval"] == pytest.approx([end / 4 for end in speedup["interval"]])
