"""A study as its user runs it: results and refusals."""

import json
import os
import re
import shlex
from datetime import datetime

import pandas as pd

from scaling.config import devices
from scaling.tables import schema
from small_study import JOB, forked

ALWAYS = {"dataset_prepare", "study_config", "tables_make", "report_render"}


def test_study_leaves_its_tables_and_one_report(finished_study):
    results = finished_study.folder / "results"
    off = {"full_trainings", "synchronization"}
    for name, table in schema.TABLES.items():
        made = table.path(results / "tables", "tiny").exists()
        assert made == (table.records not in off), name
    timing = pd.read_csv(results / "tables/tiny/timing.csv")
    assert timing["status"].tolist() == ["ok", "ok"]
    assert timing["count"].tolist() == [3, 3]
    assert timing["iterations"].tolist() == [6, 3]
    page = (results / "report.html").read_text()
    assert page.lower().count("<html") == 1


def test_timed_jobs_run_alone_cells_before_experiments(finished_study):
    jobs = [rule for rule in JOB.findall(finished_study.said) if rule not in ALWAYS]
    assert jobs[:4] == ["machine_check", "peaks_measure", "train_run", "train_run"]
    spans = []
    for size in (10, 20):
        environment = json.loads(finished_study.record(batch_size=size).read_text())["environment"]
        spans.append([datetime.fromisoformat(environment[key]) for key in ("started", "ended")])
    (_, first_end), (second_start, _) = sorted(spans)
    assert first_end <= second_start


def test_training_has_the_options_of_its_folder(new_study):
    # In the place of ours, which has a base.
    own = {"precision": "float32", **dict.fromkeys(["channels_last", "compile"], False)}
    own |= {"engine": "resident", **dict.fromkeys(["cuda_graph", "fused_norms"], False)}
    full = {"gpus": [1], "epochs": 5, "recipe": "muon", "learning_rate": 0.7}
    study = new_study(
        grid__seeds=[3],
        grid__repeats=2,
        grid__gpus=[1, 2],
        training__measured_seconds=60.0,
        time_to_accuracy=full,
        parts=["scaling", "time_to_accuracy", "proofs"],
        recipes__muon=own,
    )
    ranks = "results/experiments/gpus~2/synchronization.json"
    targets = ["results/tables/tiny/timing.csv", "results/tables/trained_to_accuracy.csv", ranks]
    said = study.snakemake("--dry-run", "--printshellcmds", *targets).stdout
    words = [shlex.split(line)[1:3] for line in re.findall(r"scripts/(\w+\.py .*)", said)]
    asked = [json.loads(options) for options, _ in words]
    for one, (_, files) in zip(asked, words, strict=True):
        one |= json.loads(files) if files.startswith("{") else {}
    runs = [one for one in asked if "spec" in one]
    for one in runs:
        cell = {key: str(value) for key, value in one["spec"]["cell"].items()}
        for key, value in re.findall(r"(\w+)~([^/]+)", one["output"]):
            assert cell[key] == value
    full = [one["spec"] for one in runs if "/to_accuracy/" in one["output"]]
    # And one of warm-up; none until they settle.
    assert {(one["measured_epochs"], one["measured_seconds"]) for one in full} == {(4, 0.0)}
    assert all(one["recipe_options"]["muon"] == 0.0 for one in full)
    assert {one["learning_rate"] for one in full} == {0.7}
    (plan,) = (json.loads(options)["plan"] for options, _ in words if "plan" in options)
    assert plan["gpus"] == 2 and any(ranks in files for _, files in words)


def test_progress_without_a_terminal_is_a_line_per_job(finished_study):
    lines = finished_study.said.splitlines()
    measured = [line for line in lines if re.match(r"\[\d of 7\] ", line)]
    assert [line[1] for line in measured] == list("1234567")
    timing = pd.read_csv(finished_study.folder / "results/tables/tiny/timing.csv")
    for cell in timing.itertuples():
        said = f"1 GPU, batch {cell.batch_size} per GPU, seed 0: {cell.epoch_seconds:.3g} s an"
        assert any(said in line for line in measured)
    # Not before half of them are known.
    left = [bool(re.search(r"about \d:\d\d:\d\d left$", line)) for line in measured]
    assert left == [False, False, False, True, True, True, False]
    start = next(i for i, line in enumerate(lines) if line.startswith("A scaling study is for"))
    assert lines[start + 1] == "2 configurations: 2 ok"
    report = finished_study.folder / "results/report.html"
    assert lines[start + 2] == f"The report is {report.as_uri()}"


def test_dry_run_without_the_study_s_gpu_is_a_plan(new_study, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    planned = new_study(device="cuda").snakemake("--dry-run")
    assert planned.returncode == 0 and "Logging error" not in planned.stdout
    assert "This machine could not run it: device is cuda, but no GPU is" in planned.stdout


def test_unrunnable_study_is_refused_before_any_job(new_study, monkeypatch):
    """Refused are too many devices, options that the model lacks, and a missing Slurm."""
    too_many = devices.cores() + 1
    study = new_study(grid__gpus=[1, too_many])
    refused = study.snakemake()
    assert refused.returncode != 0 and "Job stats" not in refused.stdout
    assert f"\nerror: grid.gpus requires {too_many}, but this machine has" in refused.stdout
    assert "common.smk" not in refused.stdout and "Traceback" not in refused.stdout
    planned = study.snakemake("--dry-run")
    assert planned.returncode == 0
    assert f"This machine could not run it: grid.gpus requires {too_many}" in planned.stdout
    assert not (study.folder / "results").exists()
    # What a killed run would leave, and the next one stop at.
    assert not list((study.folder / ".snakemake/locks").glob("*"))
    study.configure({"grid.gpus": [1], "model.options": {"depth": 3}})
    refused = study.snakemake()
    assert refused.returncode != 0 and "unexpected keyword argument 'depth'" in refused.stdout
    (study.folder / "squeue").symlink_to("/bin/false")
    monkeypatch.setenv("PATH", f"{study.folder}:{os.environ['PATH']}")
    assert forked(["--profile", "slurm", "--dry-run"], study.folder).returncode == 0
    refused = forked(["--profile", "slurm"], study.folder)
    assert refused.returncode != 0 and "\nerror: Slurm does not answer (" in refused.stdout
