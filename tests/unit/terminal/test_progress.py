"""States of runs from a study's files, and the remaining time."""

import os
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from scaling.core import files
from scaling.core.records.run import RUN
from scaling.terminal import progress

STORED = Path(__file__).parents[3] / "studies/h200x2"
OUT_OF_MEMORY = STORED.parent / "h200x2-models/runs/recipe~plain/strategy~dp"


def test_status_of_runs_while_a_study_runs_and_after(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(STORED / "runs/recipe~plain", "results/runs/recipe~plain")
    config = yaml.safe_load((STORED / "config.yaml").read_text())
    config["grid"] |= {"recipes": ["plain"], "strategies": ["dp"], "seeds": [0]}
    config["grid"] |= {"repeats": 1, "strong_scaling": False}
    config["parts"] = ["scaling", "time_to_accuracy", "proofs"]
    config["time_to_accuracy"] |= {"recipe": "tuned", "gpus": [1, 2]}
    config["grid"]["batch_sizes"] += [4096]
    shutil.copytree(OUT_OF_MEMORY, "results/runs/recipe~plain/strategy~dp", dirs_exist_ok=True)
    Path("results/config.yaml").write_text(yaml.safe_dump(config))
    alone = OUT_OF_MEMORY.with_name("strategy~single")
    shutil.copytree(alone, "results/runs/recipe~plain/strategy~single", dirs_exist_ok=True)
    cells = Path("runs/recipe~plain/strategy~dp/gpus~2")
    # One failed, one was killed before, one waits for Slurm, and one runs.
    texts = {32: "error: training of 2·9999 failed\n", 128: "epoch 1\n"}
    texts |= {512: "Slurm has not begun this job's script.\n", 2048: ""}
    Path("snakemake").write_text("input()")
    with subprocess.Popen([sys.executable, "snakemake"], stdin=subprocess.PIPE) as process:
        for size, text in texts.items():
            Path("results", cells, f"batch_size~{size}/seed~0/run.json").unlink(missing_ok=True)
            log = Path("logs/train_run", *cells.parts[1:], f"batch_size~{size}/seed~0.log")
            files.write_text(log, text)
            if size == 128:
                os.utime(log, (0, 0))
        progress.main([])
        process.communicate(b"\n")
    said = capsys.readouterr().out
    counts = "6 done, 2 oom, 1 failed, 2 waiting, 1 running"
    assert said.startswith(f"h200x2 (results/config.yaml), running, 8 of 12: {counts}\n")
    rows = [line.split() for line in said.splitlines() if " plain " in line]
    assert rows == [
        ["plain", "1", *["done"] * 5, "oom"],
        [*("plain", "dp", "2"), "failed", "waiting", "waiting", "running", "done", "oom"],
    ]
    assert "batch_size~32/seed~0.log\n  error: training of 2·9999 failed\n" in said
    assert "\nOther measurements: 0 of 14 done\n" in said


def test_status_of_a_study_without_grid_has_no_table(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    config = yaml.safe_load((STORED / "config.yaml").read_text()) | {"parts": ["proofs"]}
    first, _, last = progress.study_status(config, since=0).splitlines()
    assert first.endswith(", running, 0 of 1") and last == "Other measurements: 0 of 1 done"


def test_outcome_of_a_run_has_seconds_and_status():
    record = RUN.read(next(STORED.parent.glob("h200-gpt2/runs/*/*/*/*/*/run.json")))
    assert progress.outcome(record).endswith(" s an epoch")
    record["training"]["epoch_lines"], record["status"] = 0, "diverged"
    assert progress.outcome(record).endswith(" s in all, as no epoch was printed, diverged")


def test_each_due_measurement_takes_as_long_as_the_others(monkeypatch):
    monkeypatch.setattr(progress.time, "time", lambda: 160.0)
    assert progress.time_left(100.0, done=3, due=2) == timedelta(seconds=40)


RECORD = Path("results/runs/recipe~mine/strategy~single/gpus~1/batch_size~32/seed~0/run.json")


def begin(monkeypatch, command, source="own", *, local=True, methods=()):
    """Begin a study of one due run with a recipe `command`."""
    monkeypatch.setattr(progress.say.__self__, "filters", [])
    job = SimpleNamespace(output=[str(RECORD)], resources={}, log=[])
    dag = SimpleNamespace(jobid=id, needrun_jobs=lambda: [job])
    deployed = SimpleNamespace(deployment_method={*methods})
    options = {"global_resources": {}, "dryrun": False, "local_exec": local}
    workflow = SimpleNamespace(dag=dag, deployment_settings=deployed, **options)
    config = {"recipes": {"mine": {"command": command}}, "device": "cpu"}
    config |= {"dataset": {"source": source}, "machine": {"check": "off"}}
    places = "results", "results", f"{source}/images.npz"
    progress.Progress(workflow, config, *places, str)._begin()


def test_missing_program_is_refused_where_the_jobs_run(monkeypatch):
    begin(monkeypatch, "no-such-program {gpus}", local=False)
    begin(monkeypatch, "no-such-program {gpus}", methods=["apptainer"])
    with pytest.raises(SystemExit, match=r"mine\.command starts no-such-program, which is no prog"):
        begin(monkeypatch, "no-such-program {gpus}")


def test_repeated_commands_need_no_images(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    files.write_text(RECORD, "{}")
    begin(monkeypatch, "env {gpus}")
    with pytest.raises(SystemExit, match=r"cifar10/images\.npz: missing, so all would be measured"):
        begin(monkeypatch, "env {gpus}", source="cifar10")
