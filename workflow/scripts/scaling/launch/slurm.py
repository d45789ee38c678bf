"""What Slurm's executor for Snakemake lacks: a look before the first job, and at jobs it forgets.

Written for snakemake-executor-plugin-slurm 2.8.0; docs/slurm_executor.md has its faults.
"""

import fcntl
import os
import re
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path
from shutil import which
from typing import Any

from scaling.core.errors import UserError

FAILED = {"BOOT_FAIL", "CANCELLED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY"}
FAILED |= {"PREEMPTED", "TIMEOUT"}
LONGEST_WAIT_SECONDS = 30
"""Between two looks at the queue; the executor's 180 leave nodes without work for minutes."""
PATIENT = """sbatch() {
  until said=$(command sbatch "$@" 2>&1 >&3); do
    case $said in
      *SubmitJob*) echo "sbatch is tried again: $said" >> /proc/$PPID/fd/2; sleep 30 ;;
      *) echo "$said" >&2; return 1 ;;
    esac
  done
} 3>&1
"""
"""sbatch as a function of the shell that waits where the limit on submitted jobs is reached."""


def preflight(folder: Path, submits: bool) -> list[str]:
    """Refuse a run without sbatch, and one that `submits` without controller or beside others.

    Returns sentences on what else to know before.
    """
    if not which("sbatch"):
        raise UserError(
            "profile slurm needs sbatch, which is not on this machine's PATH: run it on a login "
            "node of the cluster, or here with --profile profiles/local"
        )
    jobs = _queue("%Z") if submits else {}
    here = {job: state for job, (state, place) in jobs.items() if place == str(folder)}
    over = FAILED | {"COMPLETED"}
    if left := [f"{job} {state}" for job, state in here.items() if state not in over]:
        raise UserError(
            f"jobs of an earlier run of this study are in Slurm's queue ({', '.join(left)}): wait "
            "until they have ended, what they finish counts, or end them by make cancel"
        )
    about = _answer("scontrol", "show", "config") if submits else ""
    kept = re.search(r"MinJobAge\s*=\s*(\d+)", about)
    if not kept or int(kept[1]) >= LONGEST_WAIT_SECONDS:
        return []
    return [
        f"Slurm forgets jobs {kept[1]} s after their end (MinJobAge): one that fails may be "
        "reported without its reason"
    ]


def _queue(column: str) -> dict[str, list[str]]:
    """The state and another column of each of this user's jobs, of ended ones too, by their ids."""
    jobs = ["--states=all", f"--user={os.getuid()}", f"--format=%i|%T|{column}"]
    rows = (line.split("|") for line in _answer("squeue", "--noheader", *jobs).splitlines())
    return {number: told for number, *told in rows}


def _answer(*command: str) -> str:
    """What a command of Slurm's prints; UserError where it does not answer."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except subprocess.SubprocessError as error:
        said = str(getattr(error, "stderr", None) or error).strip()
        raise UserError(f"Slurm does not answer ({said}): see scontrol ping") from error
    return done.stdout


def with_gres(command: str) -> str:
    """Ask for the GPUs of an sbatch command by --gres, which counts them for each node."""
    pattern = r"--gpus-per-node=" if "--gpus-per-node=" in command else r"--gpus="
    return re.sub(r" --gpus=\S+", "", re.sub(pattern, "--gres=gpu:", command))


def mend(executor: Any, extra: str = "", gres: bool = False) -> None:
    """Have the executor's module forget no job, name jobs by cell, tell reasons, add options."""
    # Beside what sbatch says there, which else would be written over in a file.
    fcntl.fcntl(2, fcntl.F_SETFL, fcntl.fcntl(2, fcntl.F_GETFL) | os.O_APPEND)
    watch, kind, submit = Watch(), executor.Executor, executor.get_submit_command
    check, fail = kind.check_active_jobs, kind.report_job_error

    async def check_active_jobs(self: Any, jobs: list[Any]) -> AsyncIterator[Any]:
        watch.jobs = {job.external_jobid: job for job in jobs}
        async for job in check(self, jobs):
            yield job
        wait = self.next_seconds_between_status_checks
        self.next_seconds_between_status_checks = min(wait, LONGEST_WAIT_SECONDS)

    def get_submit_command(job: Any, params: dict[str, Any], **more: Any) -> Any:
        name = params["comment_str"].removeprefix("rule_").replace("_wildcards_", "_")
        command = f"{submit(job, params | {'run_uuid': name}, **more)} {extra}"
        return PATIENT + (with_gres(command) if gres else command)

    def report_job_error(self: Any, job: Any, msg: str | None = None, **more: Any) -> None:
        fail(self, job, msg=watch.reason(job) or msg, **more)

    kind.check_active_jobs, kind.report_job_error = check_active_jobs, report_job_error
    executor.get_submit_command, executor.query_job_status = get_submit_command, watch.states


class Watch:
    """What Slurm says of the `jobs` that the executor waits for, by their Slurm ids."""

    def __init__(self) -> None:
        self.jobs: dict[str, Any] = {}
        self._begun = time.time()
        self._told: dict[str, str] = {}
        self._waits: dict[str, str] = {}

    async def states(self, command: str, logger: Any) -> tuple[dict[str, str], float]:
        """The jobs' states, none without an answer; what has all its output is COMPLETED."""
        try:
            queue = _queue("%r")
        except UserError as error:
            logger.warning(f"{error}; its jobs run on, it is asked again")
            return {}, 0.0
        states, waits = dict[str, str](), dict[str, str]()
        for number, job in self.jobs.items():
            states[number], reason = queue.get(number, ["CANCELLED", "not in the queue any more"])
            if states[number] == "PENDING":
                waits[reason] = number
            elif states[number] in FAILED:
                self._told[number] = f"{states[number]} ({reason})"
                outputs = [Path(output) for output in job.job.output]
                done = all(path.exists() and path.stat().st_mtime > self._begun for path in outputs)
                states[number] = "COMPLETED" if done else "CANCELLED"
        if waits.keys() - self._waits.keys() - {"None"}:
            told = [f"{reason} (job {job})" for reason, job in waits.items()]
            logger.info(f"Slurm lets jobs wait: {', '.join(told)}")
        self._waits = waits
        return states, 0.0

    def reason(self, job: Any) -> str | None:
        """Why a job failed, as the queue and Slurm's own words in the job's log tell."""
        if (told := self._told.get(job.external_jobid)) is None:
            return None
        log = Path(job.aux["slurm_logfile"])
        lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
        own = [line for line in lines if line.startswith(("slurmstepd: error", "srun: error"))]
        return "\n".join([f"Slurm's job {job.external_jobid} failed: {told}", *own])
