"""When Snakemake and Slurm lose contact, no job is lost, repeated or awaited forever."""

import os
import re
import shutil
import signal
import subprocess

import cluster
import psutil
import pytest

LONG = {"dataset__train_images": 2000, "machine__check": "off", "machine__share": True}
SLOW, QUICK = 1, 500


@pytest.fixture
def study(new_slurm_study):
    """Return a study with one run that takes hours and one that takes seconds."""
    return new_slurm_study(**LONG, grid__gpus=[1], grid__batch_sizes=[SLOW, QUICK])


def scontrol(*words):
    subprocess.run(["scontrol", *words], check=True)


@pytest.mark.parametrize(
    ("program", "told", "states"),
    [
        ("sbatch", "is submitted again", ["COMPLETED"]),
        ("srun", "srun: error: Unable to", ["FAILED", "COMPLETED"]),
        ("python", "Slurm does not answer", ["COMPLETED"]),
    ],
)
def test_controller_outage_loses_and_doubles_no_job(
    study, program, told, states, tmp_path, monkeypatch
):
    """At the first call of `program`, the controller is suspended. A job step calls `python`."""
    (pid,) = cluster.running("slurmctld")
    stand_in = tmp_path / program
    due = '[ "$SLURM_STEP_ID" ]' if program == "python" else "true"
    once = f"{due} && mkdir {tmp_path}/once 2> /dev/null && kill -STOP {pid}"
    stand_in.write_text(f'#!/bin/sh\n{once}\nexec {shutil.which(program)} "$@"\n')
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    snakemake = study.start(study.target(batch_size=QUICK))

    def is_told():
        logs = study.folder.glob(".snakemake/slurm_logs/**/*.log")
        return any(told in said for said in [study.output(), *(log.read_text() for log in logs)])

    try:
        cluster.wait_for(is_told, "what it leads to")
    finally:
        psutil.Process(pid).resume()
    assert snakemake.wait() == 0, study.output()
    assert [job["JobState"] for job in study.jobs()] == states


def test_purged_job_is_done_if_its_record_exists_else_failed(study, slurm):
    text = slurm.joinpath("slurm.conf").read_text()
    slurm.joinpath("slurm.conf").write_text(text.replace("MinJobAge=900", "MinJobAge=2"))
    scontrol("reconfigure")
    try:
        done = study.start(study.target(batch_size=QUICK))
        assert done.wait() == 0, study.output()
        lost = study.start(study.target(batch_size=SLOW))
        study.wait_for_state("RUNNING", 1, SLOW)
        subprocess.run(["scancel", study.cell_job(1, SLOW)["JobId"]], check=True)
        assert lost.wait() != 0
    finally:
        slurm.joinpath("slurm.conf").write_text(text)
        scontrol("reconfigure")
    assert re.search(r"Slurm's job \d+ failed: CANCELLED", study.output())


def test_preempted_job_has_failed(study):
    snakemake = study.start(study.target(batch_size=SLOW))
    study.wait_for_state("RUNNING", 1, SLOW)
    node = study.cell_job(1, SLOW)["NodeList"]
    urgent = ["sbatch", "--parsable", "--partition=urgent", "--exclusive", f"--nodelist={node}"]
    other = subprocess.check_output([*urgent, "--output=/dev/null", "--wrap=sleep 3600"], text=True)
    try:
        assert snakemake.wait() != 0
    finally:
        subprocess.run(["scancel", other.strip()], check=True)
    assert "failed: PREEMPTED" in study.output()


def test_reason_of_a_wait_is_printed_and_job_has_runs_name(study):
    nodes = f"nodename={','.join(cluster.NODES)}"
    scontrol("update", nodes, "state=drain", "reason=test")
    log = study.folder / "logs/train_run/recipe~plain/strategy~single/gpus~1"
    log = log / f"batch_size~{QUICK}/seed~0.log"
    log.parent.mkdir(parents=True)
    log.write_text("of an earlier run: ok\n")
    try:
        snakemake = study.start(study.target(batch_size=QUICK))
        said = r"Slurm lets jobs wait: .+ \(job \d+\)"
        cluster.wait_for(lambda: re.search(said, study.output()), "the reason")
        job = study.cell_job(1, QUICK)
        assert log.read_text() == "Slurm has not begun this job's script.\n"
        assert job["JobName"] == f"train_run_plain_single_1_{QUICK}_0_"
        scontrol("hold", job["JobId"])
        cluster.wait_for(lambda: "JobHeld" in study.output(), "that the job is held")
        scontrol("release", job["JobId"])
    finally:
        scontrol("update", nodes, "state=resume")
    assert snakemake.wait() == 0, study.output()


SCRIPT = """
import json, os, sys, time
for epoch in range(4):
    time.sleep(0.2 if os.path.exists("hurry") else int(sys.argv[1]))
    print(json.dumps({"epoch": epoch, "samples": 60}), flush=True)
"""


def test_jobs_of_a_killed_snakemake_count_when_they_finish(new_slurm_study):
    study = new_slurm_study(
        parts=["scaling"],
        machine__check="off",
        machine__share=True,
        dataset={"source": "own"},
        recipes={"mine": {"command": "python train.py {batch_size} {gpus}"}},
        grid__recipes=["mine"],
        grid__batch_sizes=[10, 500],
        grid__gpus=[1],
    )
    (study.folder / "train.py").write_text(SCRIPT)
    quick = study.record(recipe="mine", strategy="own", batch_size=10)
    killed = study.start()
    told = "running, 0 of 2: 2 running\n"
    running = "both cells to run", study.folder
    cluster.wait_for(lambda: told in study.make("status").stdout, *running)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    study.snakemake("--unlock")
    assert study.start().wait() != 0
    slow = study.job("train_command", "mine", "single", 1, 500, 0, "")["JobId"]
    assert re.search(rf"error: jobs of an earlier run .*{slow} RUNNING", study.output())
    # A job that is cancelled between its record and its end takes the record away.
    cluster.wait_for(lambda: len(cluster.queue()) == 1, "the quick cell's job to end")
    before = quick.read_bytes()
    assert study.make("cancel").returncode == 0
    cluster.wait_for(lambda: not cluster.queue(), "an empty queue")
    (study.folder / "hurry").touch()
    assert study.start().wait() == 0, study.output()
    assert "Q1" in (study.folder / "results/report.html").read_text()
    assert quick.read_bytes() == before
    assert sum("train_command" in job["Comment"] for job in study.jobs()) == 3
