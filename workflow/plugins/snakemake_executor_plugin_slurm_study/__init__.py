"""Extend Snakemake's Slurm executor so that no job is lost (`executor: slurm-study`).

This module extends snakemake-executor-plugin-slurm 2.8.0; docs/upstream.md lists its limits. It
imports nothing of the study, because Snakemake imports it before it reads the Snakefile.
"""

import asyncio
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import snakemake_executor_plugin_slurm as slurm
from snakemake_executor_plugin_slurm import ExecutorSettings, common_settings
from snakemake_executor_plugin_slurm.utils import get_job_wildcards
from snakemake_interface_common.exceptions import WorkflowError

__all__ = ["Executor", "ExecutorSettings", "common_settings"]

ENDED = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY"}
ENDED |= {"PREEMPTED", "TIMEOUT"}
PASSES = re.compile("SubmitJob|slurm controller|timed out|temporarily|Zero Bytes")
"""Matches Slurm's messages about temporary failures to submit or start a job."""
SETTLING_SECONDS = 5
"""Seconds to wait before jobs are resubmitted, as Slurm may still accept the first submission."""


class Executor(slurm.Executor):
    """Submits jobs like its base class, but queries their states with squeue, by job id."""

    def __init__(self, workflow: Any, logger: Any) -> None:
        try:
            jobs = queue("%Z").items()
        except WorkflowError as error:
            sys.exit(f"error: {error}")
        here = [(job, state) for job, (state, folder) in jobs if folder == str(Path.cwd())]
        if left := [f"{job} {state}" for job, state in here if state not in ENDED]:
            sys.exit(
                "error: jobs of an earlier run of this study are in Slurm's queue "
                f"({', '.join(left)}): wait until they have ended, what they finish counts, or end "
                "them by make cancel"
            )
        self._begun = time.time()
        self._again: list[Any] = []
        self._begun_again: set[Any] = set()
        self._said: set[str] = set()
        """Logged reasons why jobs wait; a reason is logged once."""
        super().__init__(workflow, logger)
        # One thread submits, as two of the base class change the order.
        self._job_submission_executor = ThreadPoolExecutor(1, "slurm_job_submit")

    def get_partition_arg(self, job: Any) -> str:
        """Return sbatch options: the partition, the job's name, and `slurm.extra`."""
        extra = self.workflow.config.get("slurm", {}).get("extra", "")
        return f"{super().get_partition_arg(job)} --job-name={shlex.quote(job_name(job))} {extra}"

    def run_jobs(self, jobs: list[Any]) -> None:
        """Submit jobs by falling priority: Slurm starts equal jobs in the order of submission."""
        super().run_jobs(sorted(jobs, key=lambda job: job.priority, reverse=True))

    def run_job(self, job: Any) -> None:
        """Submit a job unless it is in Slurm's queue; try again later if Slurm does not answer."""
        try:
            queued = queue("%j|%Z").items()
        except WorkflowError as error:
            self._submit_again(job, str(error))
            return
        alive = {tuple(own): number for number, (state, *own) in queued if state not in ENDED}
        if number := alive.get((job_name(job), str(Path.cwd()))):
            log = self.slurm_logdir / f"rule_{job.name}" / get_job_wildcards(job) / f"{number}.log"
            taken = slurm.SubmittedJobInfo(job, number, {"slurm_logfile": log})
            self._report_job_submission_threadsafe(taken)
            return
        for log in map(Path, job.log):
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text("Slurm has not begun this job's script.\n")
        super().run_job(job)

    def _submit_again(self, job: Any, why: str) -> None:
        self.logger.warning(f"{job_name(job)} is submitted again: {why.splitlines()[0]}")
        self._again.append(job)

    def report_job_error(self, job_info: Any, msg: str | None = None, **more: Any) -> None:
        """Report a failed job. If its submission failed for a temporary reason, submit it again."""
        reason = (msg or "").partition("\n    sbatch call:")[0]
        if job_info.external_jobid is None and PASSES.search(reason):
            self._submit_again(job_info.job, reason)
        else:
            super().report_job_error(job_info, msg=f"{reason}\n", **more)

    async def check_active_jobs(self, active_jobs: list[Any]) -> AsyncIterator[Any]:
        """Report ended jobs and yield all others. If Slurm does not answer, yield all."""
        # Without jobs there is no query: the first call can come before the limiter is made.
        if not (active_jobs or self._again):
            return
        async with self.status_rate_limiter:
            try:
                known = queue("%r")
            except WorkflowError as error:
                self.logger.warning(f"{error}; its jobs run on, the query is repeated")
                for job in active_jobs:
                    yield job
                return
        if self._again:
            await asyncio.sleep(SETTLING_SECONDS)
            again, self._again = self._again, []
            for job in again:
                self.run_job(job)
        for job in active_jobs:
            state, reason = known.get(
                job.external_jobid, ["CANCELLED", "not in the queue any more"]
            )
            if state == "PENDING" and reason not in {"None", *self._said}:
                self._said.add(reason)
                self.logger.info(f"Slurm lets jobs wait: {reason} (job {job.external_jobid})")
            if state in ENDED:
                self._report(job, state, reason)
            else:
                yield job

    def _report(self, job: Any, state: str, reason: str) -> None:
        """Report a job that has ended, or submit it once more if srun could not start its step."""
        log, outputs = job.aux["slurm_logfile"], [Path(output) for output in job.job.output]
        # What a job wrote in this run counts, whatever became of it then.
        written = all(path.exists() and path.stat().st_mtime > self._begun for path in outputs)
        if state == "COMPLETED" or written:
            if not self.workflow.executor_settings.keep_successful_logs:
                log.unlink(missing_ok=True)
            self.report_job_success(job)
            return
        lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
        errors = [f"Slurm's job {job.external_jobid} failed: {state} ({reason})"]
        errors += [line for line in lines if line.startswith(("slurmstepd: error", "srun: error"))]
        # srun could not reach the controller.
        unheard = "srun: error: Unable" in errors[-1] and PASSES.search(errors[-1])
        if unheard and job.job not in self._begun_again:
            self._begun_again.add(job.job)
            self._submit_again(job.job, errors[-1])
        else:
            self.report_job_error(job, msg="\n".join(errors), aux_logs=[str(log)])


def job_name(job: Any) -> str:
    """Return a job's name in Slurm: its rule and its wildcards."""
    return "_".join(filter(None, [job.name, get_job_wildcards(job)]))


def queue(column: str) -> dict[str, list[str]]:
    """Return [state, *fields of `column`] of each job of this user by id, ended jobs included.

    `column` is a format of squeue, such as `%j|%Z`. WorkflowError if squeue fails.
    """
    command = ["squeue", "--noheader", "--states=all", "--array", f"--user={os.getuid()}"]
    command += [f"--format=%i|%T|{column}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        message = str(getattr(error, "stderr", None) or error).strip()
        advice = "see scontrol ping, or run here with --profile profiles/local"
        raise WorkflowError(f"Slurm does not answer ({message}): {advice}") from error
    rows = (line.split("|", 2 + column.count("|")) for line in done.stdout.splitlines())
    return {number: fields for number, *fields in rows}
