"""Snakemake and Slurm lose sight of one another, and no job is lost, doubled or waited for."""

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
    """A study with one cell of hours and one of seconds."""
    return new_slurm_study(**LONG, grid__gpus=[1], grid__batch_sizes=[SLOW, QUICK])


def scontrol(*words):
    subprocess.run(["scontrol", *words], check=True)


def test_an_outage_of_the_controller_loses_no_job(study):
    snakemake = study.start(study.target(batch_size=QUICK))
    # Before its step has begun the job itself needs the controller.
    cluster.wait_for(lambda: list(study.folder.glob("logs/train_run/**/*.log")), "the training")
    (pid,) = cluster.running("slurmctld")
    controller = psutil.Process(pid)
    controller.suspend()
    try:
        cluster.wait_for(lambda: "Slurm does not answer" in study.output(), "a look at the queue")
    finally:
        controller.resume()
    assert snakemake.wait() == 0, study.output()
    assert study.record(batch_size=QUICK).exists()


@pytest.mark.parametrize("program", ["sbatch", "srun"])
def test_an_outage_at_the_submission_loses_and_doubles_no_job(
    study, program, tmp_path, monkeypatch
):
    """The controller is suspended when the program is called for the first time."""
    (pid,) = cluster.running("slurmctld")
    stand_in = tmp_path / program
    once = f"mkdir {tmp_path}/once 2> /dev/null && kill -STOP {pid}"
    stand_in.write_text(f'#!/bin/sh\n{once}\nexec {shutil.which(program)} "$@"\n')
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    snakemake = study.start(study.target(batch_size=QUICK))
    logs = study.folder / ".snakemake/slurm_logs"
    refused = {
        "sbatch": lambda: "is submitted again" in study.output(),
        "srun": lambda: any("Unable to" in path.read_text() for path in logs.rglob("*.log")),
    }
    try:
        cluster.wait_for(refused[program], "a refusal")
    finally:
        psutil.Process(pid).resume()
    assert snakemake.wait() == 0, study.output()
    states = [job["JobState"] for job in study.jobs()]
    assert states == {"sbatch": ["COMPLETED"], "srun": ["FAILED", "COMPLETED"]}[program]


def test_a_job_that_slurm_has_forgotten_is_done_where_its_record_is_and_else_failed(study, slurm):
    text = slurm.joinpath("slurm.conf").read_text()
    slurm.joinpath("slurm.conf").write_text(text.replace("MinJobAge=900", "MinJobAge=2"))
    scontrol("reconfigure")
    try:
        done = study.start(study.target(batch_size=QUICK))
        assert done.wait() == 0, study.output()
        assert "Slurm forgets jobs 2 s after their end (MinJobAge)" in study.output()
        lost = study.start(study.target(batch_size=SLOW))
        study.wait_for_state("RUNNING", 1, SLOW)
        subprocess.run(["scancel", study.cell_job(1, SLOW)["JobId"]], check=True)
        assert lost.wait() != 0
    finally:
        slurm.joinpath("slurm.conf").write_text(text)
        scontrol("reconfigure")
    assert re.search(r"Slurm's job \d+ failed: CANCELLED", study.output())


def test_a_job_that_is_preempted_has_failed(study):
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


def test_the_reason_of_a_wait_is_said_and_the_jobs_name_is_its_cell(study):
    for node in cluster.NODES:
        scontrol("update", f"nodename={node}", "state=drain", "reason=test")
    log = study.folder / "logs/train_run/recipe~plain/strategy~ddp/gpus~1"
    log = log / f"batch_size~{QUICK}/seed~0.log"
    log.parent.mkdir(parents=True)
    log.write_text("of an earlier run: ok\n")
    try:
        snakemake = study.start(study.target(batch_size=QUICK))
        said = r"Slurm lets jobs wait: .+ \(job \d+\)"
        cluster.wait_for(lambda: re.search(said, study.output()), "the reason")
        job = study.cell_job(1, QUICK)
        assert log.read_text() == "Slurm has not begun this job's script.\n"
        assert job["JobName"] == f"train_run_plain_ddp_1_{QUICK}_0_"
        scontrol("hold", job["JobId"])
        cluster.wait_for(lambda: "JobHeld" in study.output(), "that the job is held")
        scontrol("release", job["JobId"])
    finally:
        for node in cluster.NODES:
            scontrol("update", f"nodename={node}", "state=resume")
    assert snakemake.wait() == 0, study.output()


def test_after_a_kill_the_jobs_that_run_on_are_found_and_what_they_finish_counts(study):
    targets = [study.target(batch_size=size) for size in (SLOW, QUICK)]
    killed = study.start(*targets)
    for size in (SLOW, QUICK):
        study.wait_for_state("RUNNING", 1, size)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    study.snakemake("--unlock")
    assert study.start(*targets).wait() != 0
    slow = study.cell_job(1, SLOW)["JobId"]
    assert re.search(rf"error: jobs of an earlier run .*{slow} RUNNING", study.output())
    study.wait_for_state("COMPLETED", 1, QUICK)
    before = study.record(batch_size=QUICK).read_bytes()
    subprocess.run(["make", "cancel"], cwd=study.folder, check=True)
    cluster.wait_for(lambda: not cluster.queue(), "an empty queue")
    jobs = len(study.jobs())
    again = study.start(targets[1])
    assert again.wait() == 0, study.output()
    assert study.record(batch_size=QUICK).read_bytes() == before
    assert len(study.jobs()) == jobs
