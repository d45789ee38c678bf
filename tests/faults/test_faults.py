"""After kills and signals no process survives, and no finished record is lost."""

import json
import os
import pty
import random
import signal
import subprocess
import time
from datetime import datetime

import psutil
import pytest

CELL = {"gpus": 2, "batch_size": 10}
CELLS = [{"gpus": gpus, "batch_size": size} for gpus in (1, 2) for size in (10, 20)]
KILLS = int(os.environ.get("FAULTS_KILLS", "20"))
MOST_SECONDS = 40
"""Approximate duration of the four runs in seconds."""
PATIENCE_SECONDS = 15
LONG = {"dataset__train_images": 6000, "grid__gpus": [1, 2], "grid__batch_sizes": [1]}
"""Configuration whose training takes hours, so that only a kill ends it."""
MANIFEST = "resources/dataset/synthetic/manifest.json"
AT_THE_MOMENT = """
import logging, signal

class Sender(logging.Handler):
    def emit(self, record):
        if getattr(getattr(record, "event", None), "name", "") == "JOB_FINISHED":
            os.kill(os.getpid(), signal.SIGTERM)

logger.addHandler(Sender())
"""
"""Code that sends SIGTERM when a job ends, while the scheduler holds a lock that its handler
takes."""


@pytest.mark.parametrize("victim", ["snakemake", "bash", "python"])
def test_all_processes_of_a_training_end_with(new_study, victim):
    study = new_study(**LONG)
    snakemake = study.start(study.target(gpus=2, batch_size=1))
    study.wait_for_training()
    # The oldest Python is the one that started the ranks.
    found = [process for process in study.processes() if process.info["name"].startswith(victim)]
    min(found, key=psutil.Process.create_time).kill()
    snakemake.wait()
    assert study.orphans() == []


def test_training_without_ranks_ends_with_its_snakemake(new_study):
    study = new_study(dataset__train_images=6000, convergence__epochs=10000)
    snakemake = study.start("results/convergence/remedy~none/global_batch~10/runs.json")
    study.wait_for(
        lambda: any(
            "convergence_train.py" in "".join(process.info["cmdline"][1:2])
            and process.cpu_times().user > 5
            for process in study.processes()
        )
    )
    snakemake.kill()
    snakemake.wait()
    assert study.orphans() == []


@pytest.mark.parametrize("seed", [*range(KILLS), *[time.time_ns()] * bool(KILLS)])
def test_kill_at_any_moment_loses_and_repeats_nothing(new_study, seed):
    print(f"seed {seed}")
    study = new_study(grid__gpus=[1, 2])
    targets = [study.target(**cell) for cell in CELLS]
    snakemake = study.start(*targets)
    drawn = random.Random(seed)
    time.sleep(drawn.uniform(0, MOST_SECONDS))
    victims = sorted(study.processes(), key=psutil.Process.create_time)
    if victims and drawn.random() < 0.5:
        drawn.choice(victims).kill()
    else:
        snakemake.kill()
    snakemake.wait()
    assert study.orphans() == []
    records = [study.record(**cell) for cell in CELLS]
    before = {path: path.read_bytes() for path in records if path.exists()}
    study.finish("--unlock")
    study.finish(*targets)
    assert {path: path.read_bytes() for path in before} == before
    assert all(path.exists() for path in records)
    # Of writers and of ranks that were killed.
    assert [path.name for path in (study.folder / "results").rglob(".*")] == []


def test_sigterm_at_a_jobs_end_starts_no_other_job(new_study):
    study = new_study(**LONG)
    study.edit("Snakefile", AT_THE_MOMENT)
    assert study.start(MANIFEST, study.target(batch_size=1)).wait(PATIENCE_SECONDS) == 1
    assert "Terminating processes on user request" in study.output()
    assert "rule train_run" not in study.output() and not study.processes()
    study.finish(MANIFEST)


@pytest.mark.parametrize("mode", ["subprocess", "remote"])
def test_sigterm_ends_the_snakemake_of_one_job_at_once(new_study, mode):
    study = new_study(**LONG)
    study.finish(MANIFEST)
    job = "train_run:recipe=plain,strategy=single,gpus=1,batch_size=1,seed=0,repeat="
    process = study.start("--mode", mode, "--nolock", "--no-hooks", "--target-jobs", job)
    study.wait_for_training()
    process.terminate()
    assert process.wait(PATIENCE_SECONDS) == 128 + signal.SIGTERM
    assert study.orphans() == []


def test_closed_terminal_ends_study_without_a_lock(new_study):
    study = new_study(**LONG)
    ours, its = pty.openpty()
    options = [study.target(batch_size=1), "--configfile", "tiny.yaml"]
    study.process = subprocess.Popen(
        ["snakemake", "--profile", "profiles/local", *options],
        **{"cwd": study.folder, "stdin": its, "stdout": its, "stderr": its},
        start_new_session=True,
    )
    os.close(its)
    study.wait_for_training()
    os.close(ours)
    os.killpg(study.process.pid, signal.SIGHUP)  # As a shell does.
    assert study.process.wait(PATIENCE_SECONDS) == 1
    assert study.orphans() == []
    study.finish(MANIFEST)


def test_two_studies_at_once_are_timed_one_after_another(new_study):
    studies = [new_study(grid__gpus=[1, 2]) for _ in range(2)]
    for study in studies:
        study.finish(MANIFEST)
    for study in studies:
        study.start(study.target(**CELL))
    for study in studies:
        assert study.process.wait() == 0, study.output()
    spans = []
    for study in studies:
        record = json.loads(study.record(**CELL).read_text())
        ended = datetime.fromisoformat(record["environment"]["ended"]).timestamp()
        spans.append((ended - record["run_seconds"], ended))
    (_, first_ends), (second_starts, _) = sorted(spans)
    # The record is written a moment after its processes have ended.
    assert second_starts >= first_ends - 1
    logs = [path.read_text() for study in studies for path in study.folder.glob("logs/**/*.log")]
    assert sum("waits for 1 of 1 CPUs, for at most" in log for log in logs) == 1
