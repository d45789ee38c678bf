"""What the executor makes of Slurm's answers, by a stand-in for squeue that says what it says."""

import asyncio
import logging
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import snakemake_executor_plugin_slurm_study as plugin

from scaling.core import environment
from scaling.core.errors import UserError


class Executor(plugin.Executor):
    """The executor without a workflow; it notes what it reports."""

    def __init__(self):
        self.logger, self.status_rate_limiter = logging.getLogger("slurm"), nullcontext()
        self.reported, self.submitted = {}, []
        self._begun, self._wait, self._again, self._waits = 0.0, 10, [], set()
        self._running = set()
        settings = SimpleNamespace(keep_successful_logs=False, init_seconds_before_status_checks=5)
        self.workflow = SimpleNamespace(executor_settings=settings)

    def report_job_success(self, job_info):
        self.reported[job_info.external_jobid] = "done"

    def print_job_error(self, job_info, msg=None, **_):
        self.reported[job_info.external_jobid] = msg

    def run_job(self, job):
        self.submitted.append(job)

    def look(self, **outputs):
        """The ids of the jobs with these outputs that are still active after a look at them."""
        jobs = [submitted(number[1:], output) for number, output in outputs.items()]

        async def active():
            return [job.external_jobid async for job in self.check_active_jobs(jobs)]

        return asyncio.run(active())


def submitted(number, output):
    log = output.with_name(f"{number}.log")
    job = SimpleNamespace(output=[output], name=number, jobid=number, wildcards=None)
    return SimpleNamespace(job=job, external_jobid=number, aux={"slurm_logfile": log})


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A function that puts a shell script of this name on the PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def make(name, text):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)

    return make


@pytest.fixture
def executor(monkeypatch):
    def report(self, job_info, msg=None, **_):
        self.print_job_error(job_info, msg)

    monkeypatch.setattr(plugin.slurm.Executor, "report_job_error", report)
    monkeypatch.setattr(plugin, "SETTLING_SECONDS", 0)
    return Executor()


def test_a_job_is_done_where_its_record_is_and_failed_where_it_is_not(program, tmp_path, executor):
    record, none = tmp_path / "run.json", tmp_path / "none.json"
    record.touch()
    (tmp_path / "2.log").write_text("epoch 1\nslurmstepd: error: too much\n")
    queue = "echo '1|OUT_OF_MEMORY|OutOfMemory'; echo '2|PREEMPTED|None'; echo '3|RUNNING|None'"
    program("squeue", queue)
    assert executor.look(j1=record, j2=none, j3=none, j4=record, j5=none) == ["3"]
    assert executor.reported == {
        **{"1": "done", "4": "done"},
        "2": "Slurm's job 2 failed: PREEMPTED (None)\nslurmstepd: error: too much\n",
        "5": "Slurm's job 5 failed: CANCELLED (not in the queue any more)\n",
    }


@pytest.mark.parametrize("passes", ["AssocMaxSubmitJobLimit", "Unable to contact slurm controller"])
def test_a_submission_that_fails_for_now_is_tried_at_the_next_look(program, executor, passes):
    program("squeue", "")
    refused = submitted(None, Path("none"))
    executor.report_job_error(refused, msg=f"sbatch: error: {passes}")
    assert (executor.submitted, executor.reported) == ([], {})
    executor.look()
    assert executor.submitted == [refused.job]
    said = "sbatch: error: invalid partition"
    executor.report_job_error(refused, msg=f'{said}\n    sbatch call:\n  sbatch --wrap="timed out"')
    assert executor.reported == {None: f"{said}\n"}


def test_a_job_whose_gpus_cannot_be_seen_does_not_train_on_the_cpu(monkeypatch):
    monkeypatch.setattr(environment, "visible_gpus", list)
    monkeypatch.setenv("SLURM_STEP_GPUS", "0,1")
    with pytest.raises(UserError, match=r"Slurm gave this job GPUs .*:0,1.* none of them is"):
        environment.resolve_device("auto")
    assert environment.resolve_device("cpu") == "cpu"
