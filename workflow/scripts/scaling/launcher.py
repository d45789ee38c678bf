"""Starts the processes of a run, bounds their time, and leaves none behind."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

import psutil

KILL_GRACE_SECONDS = 3.0
WORKER_VARIABLE = "SCALING_STUDY_RANKS_FOLDER"
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Ending:
    """How the processes ended: the exit status, negative for a signal, and whether time was up."""

    returncode: int
    timed_out: bool


def worker_folder() -> Path | None:
    """Where this process reports if a supervisor launched it, else None."""
    folder = os.environ.get(WORKER_VARIABLE)
    return Path(folder) if folder else None


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
    with (
        _terminable(),
        subprocess.Popen(command_line, env=environment, preexec_fn=die_with_parent) as process,
    ):
        try:
            return Ending(process.wait(timeout=time_limit), timed_out=False)
        except subprocess.TimeoutExpired:
            return Ending(-signal.SIGKILL, timed_out=True)
        finally:
            _end(process.pid)


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
