"""Provenance: every run says where, when and with what it was made."""

import csv
from dataclasses import asdict, replace

from examples.records import record
from scaling.core.grid import Cell
from scaling.tables import schema
from scaling.tables.runs import provenance

CELL = Cell("plain", "ddp", 4, 128, 0)


def test_a_run_names_all_of_its_machines_once():
    environment = {
        "hosts": ["node1", "node2", "node1"],
        "device_names": ["A40", "A40", "V100", "A40"],
        "device_ids": ["GPU-a", "GPU-b", "GPU-c", "GPU-d"],
        "slurm_gpus": ["node1:0,1", "node2:2,3"],
        "torch": "2.11.0",
        "cuda": None,
        "topology": "not in the table",
    }
    row = provenance([(CELL, record(CELL, [], environment=environment))]).iloc[0]
    known = row[row.notna()].drop([*asdict(CELL), "status", "model", "training", "cpu_threads"])
    assert known.drop(["recipe_options", "compiled_batch_sizes"]).to_dict() == {
        "hosts": "node1; node2",
        "device_names": "A40; V100",
        "device_ids": "GPU-a; GPU-b; GPU-c; GPU-d",
        "slurm_gpus": "node1:0,1; node2:2,3",
        "torch": "2.11.0",
    }


def test_counts_stay_whole_beside_a_run_that_is_missing(tmp_path):
    made = record(CELL, [], environment={"cpu_count": 64})
    made["training"]["compiled_batch_sizes"] = [8192, 4308]
    one = record(CELL, [])
    one["training"]["compiled_batch_sizes"] = [128]
    runs = [(CELL, made), (CELL, one), (replace(CELL, seed=1), None)]
    schema.write("provenance", provenance(runs), tmp_path / "provenance.csv")
    with (tmp_path / "provenance.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    columns = ("status", "cpu_count", "cpu_threads", "compiled_batch_sizes")
    assert [[row[column] for column in columns] for row in rows] == [
        ["ok", "64", "1", "8192; 4308"],
        ["ok", "", "1", "128"],
        ["missing", "", "", ""],
    ]
