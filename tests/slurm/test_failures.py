"""A failed job is named, the other jobs finish, and the next start runs it again."""

import json
import signal
import subprocess
from pathlib import Path

import cluster
import psutil
import pytest

LONG = {"over its time limit": 1, "cancelled": 2, "on a node that goes down": 3}
QUICK, FAULTY, OVER_MEMORY = (1, 500), (2, 500), (1, 600)
STATES = {(1, 1): "TIMEOUT", (1, 2): "CANCELLED", (1, 3): "NODE_FAIL"}
STATES |= dict.fromkeys((FAULTY, OVER_MEMORY), "FAILED")


@pytest.fixture(scope="module")
def study(new_slurm_study):
    """Return a study with one job of each kind of failure, and one job that succeeded."""
    # Batches of 1 to 3 take minutes; two processes do not meet within a millisecond.
    study = new_slurm_study(
        dataset__train_images=6000,
        slurm__gres=True,
        machine__share=True,
        machine__check="off",
        machine__collective_timeout_seconds=0.001,
        machine__time_limit_seconds=600,
        grid__gpus=[1, 2],
        grid__batch_sizes=[*LONG.values(), QUICK[1], OVER_MEMORY[1]],
    )
    study.targets = [study.target(gpus=gpus, batch_size=size) for gpus, size in [*STATES, QUICK]]
    # The node has no room for all: first the cell that takes longest, for Slurm waits a minute.
    snakemake = study.start(
        *study.targets,
        f"--prioritize={study.targets[0]}",
        "--set-resources",
        'train_run:runtime=1 if wildcards.batch_size == "1" else 30',
        'train_run:mem_mb=400 if wildcards.batch_size == "600" else 32000',
        'train_run:slurm_extra="--nodelist=" + ("n2" if wildcards.batch_size == "3" else "n1")',
    )
    study.wait_for_state("RUNNING", 1, LONG["on a node that goes down"])
    subprocess.run(["scontrol", "update", "nodename=n2", "state=down", "reason=test"], check=True)
    study.wait_for_state("RUNNING", 1, LONG["cancelled"])
    subprocess.run(["scancel", study.cell_job(1, LONG["cancelled"])["JobId"]], check=True)
    snakemake.wait()
    subprocess.run(["scontrol", "update", "nodename=n2", "state=resume"], check=True)
    assert snakemake.returncode != 0, study.output()
    return study


@pytest.mark.parametrize("cell", STATES)
def test_failed_job_is_named_with_rule_run_slurm_job_and_log(study, cell):
    job = study.cell_job(*cell)
    assert job["JobState"] == STATES[cell]
    reports = study.output().split("Error in rule ")[1:]
    (report,) = (text for text in reports if f"external_jobid: {job['JobId']}\n" in text)
    assert report.startswith("train_run:")
    record = study.target(gpus=cell[0], batch_size=cell[1])
    log = record.replace("results/runs/", "logs/train_run/").replace("/run.json", ".log")
    for words in (STATES[cell], record, log, f"{job['JobId']}.log"):
        assert words in report
    assert "\nFor further error details" in report and "--wrap" not in report


def test_other_run_finishes_and_no_job_starts_twice(study):
    assert "training of plain/ddp, 2 GPUs, batch 500 per GPU, seed 0 failed" in study.output()
    said = Path(study.cell_job(*OVER_MEMORY)["StdErr"]).read_text()
    assert "Exceeded job memory limit" in said
    assert len(study.jobs()) == len(STATES) + 1
    assert {job["Restarts"] for job in study.jobs()} == {"0"}
    done = study.cell_job(*QUICK)
    assert (done["JobState"], done["JOB_GRES"]) == ("COMPLETED", "gpu:1")
    assert cluster.gpus_of_step(done) in (["0"], ["1"], ["2"], ["3"])
    assert json.loads(study.record(gpus=1, batch_size=500).read_text())["status"] == "ok"
    assert not any(study.record(gpus=gpus, batch_size=size).exists() for gpus, size in STATES)


def test_next_start_submits_missing_runs_and_interrupt_cancels(study):
    before = len(study.jobs())
    snakemake = study.start(*study.targets)
    for size in LONG.values():
        study.wait_for_state("RUNNING", 1, size)
    assert cluster.queue()
    snakemake.send_signal(signal.SIGINT)
    snakemake.wait()
    cluster.wait_for(lambda: not cluster.queue(), "an empty queue")
    assert snakemake.returncode != 0
    new = {job["Comment"]: job["JobState"] for job in study.jobs()[before:]}
    names = {n: "single" if n == 1 else "ddp" for n, _ in STATES}
    runs = {f"rule_train_run_wildcards_plain_{names[n]}_{n}_{size}_0_" for n, size in STATES}
    assert set(new) == runs
    assert all(study.cell_job(1, size)["JobState"] == "CANCELLED" for size in LONG.values())
    found = psutil.process_iter(["cwd"])
    assert not [process for process in found if process.info["cwd"] == str(study.folder)]
