"""Starts the processes of a run, bounds their time, and leaves none behind."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

import psutil

from scaling import oom_killer

KILL_GRACE_SECONDS = 3.0
WORKER_VARIABLE = "SCALING_STUDY_RANKS_FOLDER"
STARTED_VARIABLE = "SCALING_STUDY_STARTED"
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Ending:
    """How the processes ended.

    The exit status, negative for a signal; whether time was up; the seconds from the start to the
    end of the last one; how many processes of our control group the kernel ended meanwhile for
    want of memory; the GPUs they had, as CUDA_VISIBLE_DEVICES names them.
    """

    returncode: int
    timed_out: bool
    seconds: float = 0.0
    oom_kills: int = 0
    gpus: tuple[str, ...] = ()


def worker_folder() -> Path | None:
    """Where this process reports if a supervisor launched it, else None."""
    folder = os.environ.get(WORKER_VARIABLE)
    return Path(folder) if folder else None


def started() -> float:
    """When the supervisor started the command that this process belongs to: its time.time()."""
    return float(os.environ[STARTED_VARIABLE])


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies, so that none is left behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def under_torchrun() -> bool:
    """Whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def command(script: Path, arguments: list[str], processes: int) -> list[str]:
    """The command line of `processes` processes of `script`: torchrun's, for more than one."""
    if processes == 1:
        return [sys.executable, str(script), *arguments]
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    return [sys.executable, *launcher, str(script), *arguments]


def launch(command_line: list[str], environment: dict[str, str], time_limit: float) -> Ending:
    """Run a command with its output on ours; kill it and all it started after `time_limit` s."""
    kills_before = oom_killer.kills_so_far()
    start = time.time()
    variables = {**environment, STARTED_VARIABLE: repr(start)}
    with (
        _terminable(),
        subprocess.Popen(command_line, env=variables, preexec_fn=die_with_parent) as process,
    ):
        try:
            returncode, timed_out = process.wait(timeout=time_limit), False
        except subprocess.TimeoutExpired:
            returncode, timed_out = -signal.SIGKILL, True
        finally:
            _end(process.pid)
    return Ending(
        returncode,
        timed_out,
        seconds=time.time() - start,
        oom_kills=oom_killer.kills_so_far() - kills_before,
    )


def _end(pid: int) -> None:
    """Ask the process and its descendants to end, then insist."""
    try:
        root = psutil.Process(pid)
        family = [*root.children(recursive=True), root]
    except psutil.NoSuchProcess:
        return
    for send in (psutil.Process.terminate, psutil.Process.kill):
        for member in family:
            try:
                send(member)
            except psutil.NoSuchProcess:
                continue
        _, family = psutil.wait_procs(family, timeout=KILL_GRACE_SECONDS)


@contextmanager
def _terminable() -> Iterator[None]:
    """Within the block SIGTERM raises SystemExit, so that clean-up runs."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        sys.exit(128 + number)

    previous = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
