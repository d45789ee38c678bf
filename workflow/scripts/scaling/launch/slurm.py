"""What Slurm's executor for Snakemake lacks: a look before the first job, and at jobs it forgets.

Written for snakemake-executor-plugin-slurm 2.8.0; docs/slurm_executor.md has its faults.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from shutil import which
from typing import Any

from scaling.core.errors import UserError

SUBMIT = Path(__file__).parents[2] / "slurm_submit.py"
FAILED = {"BOOT_FAIL", "CANCELLED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT"}
"""What the executor takes for a failure; it waits for ever for a job that was PREEMPTED."""
ANSWER_SECONDS = 60


def preflight(folder: Path, submits: bool) -> None:
    """Refuse a run without sbatch, and one that `submits` without controller or beside jobs here.

    The jobs of a Snakemake that was killed run on, and would write what a second one writes.
    """
    if not which("sbatch"):
        raise UserError(
            "profile slurm needs sbatch, which is not on this machine's PATH: run it on a login "
            "node of the cluster, or here with --profile profiles/local"
        )
    if not submits:
        return
    lines, said = _queue("%i|%T|%Z")
    if lines is None:
        raise UserError(f"Slurm does not answer ({said}): begin when scontrol ping says UP")
    jobs = [line for line in lines if line[2] == str(folder) and line[1] not in FAILED]
    left = [f"{number} {state}" for number, state, _ in jobs if state != "COMPLETED"]
    if left:
        raise UserError(
            f"jobs of an earlier run of this study are in Slurm's queue ({', '.join(left)}): wait "
            "until they have ended, what they finish counts, or end them by make cancel"
        )


def _queue(columns: str) -> tuple[list[list[str]] | None, str]:
    """Those columns of all of this user's jobs, ended ones too, or None and what is wrong."""
    command = ["squeue", "--noheader", "--states=all", f"--user={os.getuid()}"]
    try:
        done = subprocess.run(
            [*command, f"--format={columns}"],
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
            check=True,
        )
    except subprocess.SubprocessError as error:
        said = (getattr(error, "stderr", None) or str(error)).strip()
        return None, said.splitlines()[-1]
    return [line.split("|") for line in done.stdout.splitlines()], ""


def mend(executor: Any) -> None:
    """Have the executor's module forget no job, name jobs by rule and cell, and tell reasons."""
    watch = Watch(executor.query_job_status)
    kind, submit = executor.Executor, executor.get_submit_command
    check, fail = kind.check_active_jobs, kind.report_job_error

    async def check_active_jobs(self: Any, jobs: list[Any]) -> AsyncIterator[Any]:
        watch.jobs = {job.external_jobid: job for job in jobs}
        async for job in check(self, jobs):
            yield job

    def report_job_error(self: Any, job: Any, msg: str | None = None, **more: Any) -> None:
        fail(self, job, msg=watch.reason(job) or msg, **more)

    def get_submit_command(job: Any, params: dict[str, Any], **more: Any) -> str:
        name = params["comment_str"].removeprefix("rule_").replace("_wildcards_", "_")
        command: str = submit(job, params | {"run_uuid": name}, **more)
        return command.replace("sbatch", f"{sys.executable} {SUBMIT}", 1)

    kind.check_active_jobs, kind.report_job_error = check_active_jobs, report_job_error
    executor.get_submit_command, executor.query_job_status = get_submit_command, watch.states
    # It would ask sacct, which may not be there, where Slurm soon forgets jobs.
    executor.get_min_job_age = lambda: sys.maxsize


class Watch:
    """What Slurm says of the `jobs` that the executor waits for, by their Slurm ids."""

    def __init__(self, query: Any) -> None:
        self.jobs: dict[str, Any] = {}
        self._query, self._begun = query, time.time()
        self._told: dict[str, str] = {}
        self._waiting: dict[str, list[str]] = {}

    async def states(self, command: str, logger: Any) -> tuple[dict[str, str], float]:
        """Return the jobs' states and the seconds it took, for a `command` of the executor's.

        None of them where Slurm does not answer: then the executor asks again. A job that has ended
        is COMPLETED where all that it was to write is there, whatever became of it afterwards.
        """
        asked = time.monotonic()
        if command.startswith("squeue"):
            lines, said = _queue("%i|%T|%r")
        else:
            ids = re.sub(r"--name \S+", f"--jobs={','.join(self.jobs)}", command)
            found, _ = await self._query(ids, logger)
            lines = found and [[number, state, ""] for number, state in found.items()]
            said = "see sacct"
        if lines is None:
            logger.warning(f"Slurm does not answer ({said}); its jobs run on, it is asked again")
            return {}, 0.0
        states = {number: (state, reason) for number, state, reason in lines}
        if command.startswith("squeue"):
            gone = ("CANCELLED", "not in its queue any more")
            states = {number: states.get(number, gone) for number in self.jobs}
        self._say_who_waits(states, logger)
        return {n: self._judge(n, *told) for n, told in states.items()}, time.monotonic() - asked

    def _judge(self, number: str, state: str, reason: str) -> str:
        if number not in self.jobs or state not in FAILED | {"PREEMPTED"}:
            return state
        outputs = [Path(output) for output in self.jobs[number].job.output]
        if all(path.exists() and path.stat().st_mtime > self._begun for path in outputs):
            return "COMPLETED"
        self._told[number] = f"{state} ({reason})"
        return state if state in FAILED else "CANCELLED"

    def _say_who_waits(self, states: dict[str, tuple[str, str]], logger: Any) -> None:
        waiting: dict[str, list[str]] = {}
        for number, (state, reason) in states.items():
            if state == "PENDING" and reason != "None":
                waiting.setdefault(reason, []).append(number)
        if waiting and waiting.keys() != self._waiting.keys():
            told = [f"{reason} (jobs {', '.join(jobs)})" for reason, jobs in waiting.items()]
            logger.info(f"Slurm lets jobs wait: {'; '.join(told)}")
        self._waiting = waiting

    def reason(self, job: Any) -> str | None:
        """Why a job failed, as the queue and Slurm's own words in the job's log tell."""
        told = self._told.get(job.external_jobid)
        log = Path(job.aux["slurm_logfile"]) if told else Path()
        if told is None:
            return None
        lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
        own = [line for line in lines if line.startswith(("slurmstepd: error", "srun: error"))]
        return "\n".join([f"Slurm's job {job.external_jobid} failed: {told}", *own])
