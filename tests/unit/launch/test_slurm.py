"""What is made of Slurm's answers, by a stand-in for squeue that says what it says."""

import asyncio
import logging
from types import SimpleNamespace

import pytest

from scaling.core import environment
from scaling.core.errors import UserError
from scaling.launch import slurm


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A function that puts a shell script of this name on the PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def make(name, text):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)

    return make


def states(program, queue, **outputs):
    """What the executor is told of jobs with these outputs, and the watch that tells it."""
    program("squeue", queue)
    watch = slurm.Watch()
    watch._begun = 0.0
    for number, output in outputs.items():
        job = SimpleNamespace(output=[output])
        aux = {"slurm_logfile": "/nowhere"}
        known = SimpleNamespace(job=job, aux=aux, external_jobid=number[1:])
        watch.jobs[known.external_jobid] = known
    found, _ = asyncio.run(watch.states("squeue --name x", logging.getLogger()))
    return found, watch


def test_a_job_is_done_where_its_record_is_and_failed_where_it_is_not(program, tmp_path):
    record = tmp_path / "run.json"
    record.touch()
    queue = "echo '1|OUT_OF_MEMORY|OutOfMemory'; echo '2|PREEMPTED|None'; echo '3|RUNNING|None'"
    none = tmp_path / "none.json"
    found, watch = states(program, queue, j1=record, j2=none, j3=none, j4=record, j5=none)
    assert found == {
        **{"1": "COMPLETED", "2": "CANCELLED", "3": "RUNNING"},
        **{"4": "COMPLETED", "5": "CANCELLED"},
    }
    reasons = [watch.reason(watch.jobs[number]) for number in "235"]
    assert reasons == [
        "Slurm's job 2 failed: PREEMPTED (None)",
        None,
        "Slurm's job 5 failed: CANCELLED (not in the queue any more)",
    ]


def test_a_job_whose_gpus_cannot_be_seen_does_not_train_on_the_cpu(monkeypatch):
    monkeypatch.setattr(environment, "visible_gpus", list)
    monkeypatch.setenv("SLURM_STEP_GPUS", "0,1")
    with pytest.raises(UserError, match=r"Slurm gave this job GPUs .*:0,1.* none of them is"):
        environment.resolve_device("auto")
    assert environment.resolve_device("cpu") == "cpu"
