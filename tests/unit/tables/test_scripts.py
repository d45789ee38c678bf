"""The script that writes tables, called as by its rule."""

import pytest

import tables_make
from examples.configurations import changed
from examples.records import epochs, record, save
from scaling.core import files, grid
from scaling.core.records.kind import PEAKS as PEAK_RATES
from scaling.tables import schema

GRID = {"recipes": ["plain"], "strategies": ["ddp"], "gpus": [1, 4], "seeds": [0, 1]}
GRID |= {"batch_sizes": [128, 8192]}
CONFIG = changed(("study", "mine"), ("grid", GRID), ("cost.per_gpu_hour", 3.6))
CELLS = grid.of(CONFIG)
SECONDS = {1: 18.311, 4: 5.023}
PEAKS = {"device": "cuda", "gpus": 4, "cpu_threads": 1, "rows": []}


def tables(folder, config=CONFIG, **records):
    """Write the tables of the study in `folder`. Return a function that reads one by name."""
    places = {"tables": folder / "tables", "runs": folder / "runs", "records": records}
    tables_make.main(config=config, **places)
    return lambda name: schema.read(name, schema.TABLES[name].path(folder / "tables", "mine"))


def test_partial_study_may_lack_records(tmp_path):
    """Batch 128 is measured, batch 8192 runs out of memory, and two runs have no record."""
    PEAK_RATES.write(tmp_path / "peaks.json", PEAKS | {"environment": {"hosts": ["vm"]}})
    for cell in [*CELLS[:4], *CELLS[6:]]:
        timed = epochs(cell, *(SECONDS[cell.gpus] + off for off in (0.1, 0, -0.1)))
        ended = {"status": "oom", "message": "no room"} if cell.batch_size == 8192 else {}
        save(tmp_path / "runs", record(cell, [] if ended else timed, **ended))
    table = tables(tmp_path, peaks=[tmp_path / "peaks.json"])
    assert table("timing").message[2] == "0 of 2 runs"
    for name in ("timing", "speedup", "utilization"):
        assert table(name).status.tolist() == ["ok", "oom", "missing", "oom"]
    assert table("costs").money_per_epoch[0] == pytest.approx(18.311e-3)
    # 2 runs of 3 epochs; of the others one row each.
    assert len(table("accuracy")) == 12
    assert table("interconnect").empty and table("bandwidth").peak_gb_per_s.isna().all()
    lines = (tmp_path / "tables/mine/timing.csv").read_text().splitlines()
    assert lines[2] == "plain,,1,8192,oom,,,,,,,,,,,no room,,,,False"


def test_results_have_figures_with_interval_and_unit(tmp_path):
    own = CONFIG | {"grid": GRID | {"batch_sizes": [32, 128]}}
    for cell in grid.of(own):
        timed = epochs(cell, 100 / cell.gpus + cell.seed)
        test = {"test_loss": 1.0, "test_accuracy": 0.8 + 0.02 * cell.seed}
        save(tmp_path / "runs", record(cell, timed, evaluation=test))
    tables(tmp_path, own)
    results = files.read_json(tmp_path / "results.json")
    rows = {(*row["configuration"].values(), row["quantity"]): row for row in results}
    known = {key[4]: row for key, row in rows.items() if key[2:4] == (4, 128)}
    units = [known[name]["unit"] for name in ("epoch_seconds", "samples", "samples_per_second")]
    assert units == ["s", "images", "images/s"] and known["samples"]["interval"] is None
    assert known["epoch_seconds"]["interval"][0] < 25.5 < known["epoch_seconds"]["interval"][1]
    assert known["verdict"]["value"] == "faster" and known["train_loss"]["value"] == 1.5
    ends = [end / 4 for end in known["speedup"]["interval"]]
    assert known["efficiency"]["interval"] == pytest.approx(ends)
    assert ("plain", "ddp", 4, 32, "fixed_global_batch_speedup") in rows
    # Student's t of two seeds, of which each is 0.01 from their mean.
    assert known["test_accuracy"]["value"] == pytest.approx(0.81)
    assert known["test_accuracy"]["interval"][1] == pytest.approx(0.81 + 12.7062 * 0.01)
