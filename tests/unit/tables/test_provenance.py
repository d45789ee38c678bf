"""Provenance: every run says where, when and with what it was made."""

import csv
from dataclasses import replace

from examples.records import record
from scaling.core.grid import Cell
from scaling.tables import schema
from scaling.tables.runs import provenance

CELL = Cell("course", "ddp", 4, 128, 0)


def test_a_run_names_its_machine_versions_commit_and_times():
    environment = {
        "hosts": ["node1", "node2", "node1"],
        "device": "cuda",
        "device_names": ["A40", "A40", "V100", "A40"],
        "device_ids": ["GPU-a", "GPU-b", "GPU-c", "GPU-d"],
        "slurm_gpus": ["node1:0,1", "node2:2,3"],
        "slurm_job_id": "4711",
        "cpu": "EPYC",
        "cpu_count": 64,
        "python": "3.12.1",
        "torch": "2.11.0",
        "cuda": "13.0",
        "nccl": "2.28.9",
        "driver": "580.1",
        "commit": "abc123",
        "config_digest": "d1",
        "started": "2025-01-01T10:00:00+00:00",
        "ended": "2025-01-01T10:05:00+00:00",
        "topology": "not in the table",
    }
    table = provenance([(CELL, record(CELL, [], environment=environment))])
    assert table.iloc[0].to_dict() == {
        "recipe": "course",
        "strategy": "ddp",
        "gpus": 4,
        "batch_size": 128,
        "seed": 0,
        "status": "ok",
        "measured_as": None,
        "model": "resnet18-cifar, width 64, 11,173,962 parameters",
        "training": "SGD, learning rate 0.1, momentum 0.9, weight decay 0.0005; "
        "random crop with 4 pixels of padding, random horizontal flip; "
        "1 warm-up and 3 measured epochs",
        "recipe_options": "loader_workers 2",
        "compiled_batch_sizes": "",
        "cpu_threads": "1",
        "hosts": "node1; node2",
        "device_names": "A40; V100",
        "device_ids": "GPU-a; GPU-b; GPU-c; GPU-d",
        "slurm_gpus": "node1:0,1; node2:2,3",
        "slurm_job_id": "4711",
        "device": "cuda",
        "cpu": "EPYC",
        "cpu_count": "64",
        "python": "3.12.1",
        "torch": "2.11.0",
        "cuda": "13.0",
        "nccl": "2.28.9",
        "driver": "580.1",
        "commit": "abc123",
        "config_digest": "d1",
        "started": "2025-01-01T10:00:00+00:00",
        "ended": "2025-01-01T10:05:00+00:00",
    }


def test_the_options_are_those_applied_and_those_asked_for_where_nothing_was():
    started, never = record(CELL, []), record(CELL, [], status="infeasible")
    started["training"] |= {
        "recipe_options": {"precision": "bf16", "compile": True},
        "recipe_applied": {"precision": "bf16", "compile": False},
        "horizontal_flip": False,
    }
    table = provenance([(CELL, started), (CELL, never)])
    assert table.recipe_options.tolist() == ["precision bf16, compile False", "loader_workers 2"]
    assert "no horizontal flip" in table.training[0]


def test_the_batch_sizes_of_compiled_steps_stay_whole_numbers(tmp_path):
    compiled, eager, ended_early, before = (record(CELL, []) for _ in range(4))
    compiled["training"]["compiled_batch_sizes"] = [8192, 4308]
    eager["training"]["compiled_batch_sizes"] = []
    ended_early["training"]["compiled_batch_sizes"] = None
    one = record(CELL, [])
    one["training"]["compiled_batch_sizes"] = [128]
    runs = [(CELL, made) for made in (compiled, eager, ended_early, before, one)]
    table = provenance(runs)
    assert table.compiled_batch_sizes.tolist() == ["8192; 4308", "", "", "", "128"]
    schema.write("provenance", table[1:], tmp_path / "provenance.csv")
    again = schema.read("provenance", tmp_path / "provenance.csv")
    assert again.compiled_batch_sizes.tolist() == ["", "", "", "128"]


def test_counts_stay_whole_beside_a_run_that_is_missing(tmp_path):
    environment = {"cpu_count": 64}
    runs = [(CELL, record(CELL, [], environment=environment)), (replace(CELL, seed=1), None)]
    schema.write("provenance", provenance(runs), tmp_path / "provenance.csv")
    with (tmp_path / "provenance.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["cpu_count"], first["cpu_threads"]) == ("64", "1")
    assert (second["cpu_count"], second["cpu_threads"]) == ("", "")
    again = schema.read("provenance", tmp_path / "provenance.csv")
    assert again[["cpu_count", "cpu_threads"]].values.tolist() == [["64", "1"], ["", ""]]
