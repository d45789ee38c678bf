"""Provenance: every run says where, when and with what it was made."""

from dataclasses import replace

from examples.records import record
from scaling.core.grid import Cell
from scaling.tables import schema
from scaling.tables.runs import provenance

CELL = Cell("plain", "ddp", 4, 128, 0)


def test_a_run_names_its_machines_once_and_counts_stay_whole_beside_a_missing_one(tmp_path):
    environment = {
        "hosts": ["node1", "node2", "node1"],
        "device_names": ["A40", "A40", "V100", "A40"],
        "slurm_gpus": ["node1:0,1", "node2:2,3"],
        "cpu_count": 64,
        "cuda": None,
        "topology": "not in the table",
    }
    made = record(CELL, [], environment=environment)
    made["training"]["compiled_batch_sizes"] = [8192, 4308]
    runs = [(CELL, made), (replace(CELL, seed=1), None)]
    schema.write("provenance", provenance(runs), tmp_path / "provenance.csv")
    columns = ["status", "hosts", "device_names", "slurm_gpus", "cpu_count", "cuda", "cpu_threads"]
    table = schema.read("provenance", tmp_path / "provenance.csv")
    assert table[[*columns, "compiled_batch_sizes"]].values.tolist() == [
        ["ok", "node1; node2", "A40; V100", "node1:0,1; node2:2,3", "64", "", "1", "8192; 4308"],
        ["missing", *[""] * 7],
    ]
