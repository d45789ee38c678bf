"""What is made of Slurm's answers, by a stand-in for squeue that says what it says."""

import asyncio
import logging
import subprocess
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


def test_sbatch_waits_for_room_among_submitted_jobs_and_for_nothing_else(program, tmp_path):
    program("sleep", "echo waits >> waits")
    limit = "sbatch: error: AssocMaxSubmitJobLimit"
    program("sbatch", f"[ -s waits ] && echo 42 && exit; echo '{limit}' >&2; exit 1")
    asked = {"shell": True, "cwd": tmp_path, "capture_output": True, "text": True}
    done = subprocess.run(slurm.PATIENT + 'sbatch --wrap="a b"', **asked)
    assert (done.returncode, done.stdout) == (0, "42\n")

    program("sbatch", 'echo "$2" >&2; exit 1')
    refused = subprocess.run(slurm.PATIENT + 'sbatch --wrap "a b"', **asked)
    assert (refused.returncode, refused.stdout, refused.stderr) == (1, "", "a b\n")


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("sbatch --gpus=2 --nodes=1", "sbatch --gres=gpu:2 --nodes=1"),
        ("sbatch --gpus=a100:2 --nodes=1", "sbatch --gres=gpu:a100:2 --nodes=1"),
        ("sbatch --gpus=4 --nodes=2 --gpus-per-node=2", "sbatch --nodes=2 --gres=gpu:2"),
    ],
)
def test_gpus_are_asked_for_by_node_where_the_cluster_wants_it(asked, given):
    assert slurm.with_gres(asked) == given
