"""Launch a run's processes with a time limit, and end all of them. Linux only."""

import ctypes
import io
import os
import platform
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import psutil

from scaling.core import environment
from scaling.core.errors import UserError
from scaling.launch.rank_log import LinesByKind, by_kind

KILL_GRACE_SECONDS = 3.0
END_GRACE_SECONDS = 1.0
"""How long processes may take to end after the first one has."""
WORKER_VARIABLE = "SCALING_STUDY_RANKS_FOLDER"
STARTED_VARIABLE = "SCALING_STUDY_STARTED"
NODES_VARIABLE = "SCALING_STUDY_NODES"
MEMBERSHIP = Path("/proc/self/cgroup")
MOUNT = Path("/sys/fs/cgroup")
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class ProcessResult:
    """How the processes ended; from `measure` also their GPUs, reports and `environment`.

    `returncode` is negative for a signal; `oom_kills` counts the processes of our cgroup that were
    killed for lack of memory meanwhile.
    """

    returncode: int
    timed_out: bool
    seconds: float = 0.0
    oom_kills: int = 0
    gpus: tuple[str, ...] = ()
    lines: LinesByKind = field(default_factory=lambda: by_kind([]))
    environment: dict[str, Any] = field(default_factory=dict)

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the contents of the reported lines of this kind, in order."""
        return [
            {key: value for key, value in line.items() if key not in ("kind", "rank")}
            for line in self.lines[kind]
        ]


def worker_folder() -> Path | None:
    """Return the report folder if a supervisor launched this process, else None."""
    folder = os.environ.get(WORKER_VARIABLE)
    return Path(folder) if folder else None


def elapsed() -> float:
    """Return the seconds since the supervisor launched this process, on whichever machine."""
    host, monotonic, day = os.environ[STARTED_VARIABLE].split()
    if host == environment.host():
        return time.monotonic() - float(monotonic)
    return time.time() - float(day)


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent dies, or now if it is already dead.

    SIGTERM, which `launch` holds back while it forks, ends it.
    """
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def adopt_orphans() -> None:
    """Make this process the parent of orphaned descendants (subreaper), so it can end them."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def reserve_port() -> int:
    """Return a TCP port that is this process's until it ends: bound, but not listened on.

    A process that binds it with SO_REUSEADDR, as PyTorch's store does, can listen on it.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("", 0))
    port = int(held.getsockname()[1])
    held.detach()
    return port


def command(script: Path, arguments: list[str], processes: int, nodes: int = 1) -> list[str]:
    """Return the command line that runs `script` in `processes` processes on `nodes` nodes.

    It starts one process, on several nodes of a Slurm job one each by srun, which forks the node's
    others (`ranks.start`). UserError for several nodes outside of a Slurm job.
    """
    own = [sys.executable, str(script), *arguments]
    if nodes == 1:
        return own
    if "SLURM_JOB_ID" not in os.environ or processes % nodes:
        raise UserError(
            f"{processes} processes are to be spread over {nodes} nodes: that takes a Slurm job "
            "with so many nodes, and the same number of processes on each"
        )
    srun = ["srun", f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"]
    # Otherwise a task is bound to one core, and sees all GPUs of an exclusive job.
    srun += ["--cpu-bind=none", f"--gpus-per-node={processes // nodes}", "--kill-on-bad-exit=1"]
    meeting = [f"MASTER_ADDR={platform.node()}", f"MASTER_PORT={reserve_port()}"]
    return [*srun, "env", f"{NODES_VARIABLE}={nodes}", *meeting, *own]


def launch(
    command_line: list[str],
    variables: dict[str, str],
    time_limit: float,
    each_line: Callable[[str], None] | None = None,
) -> ProcessResult:
    """Run a command; kill its process tree after `time_limit` seconds, or if the wait is ended.

    Its output is inherited, or passed to `each_line`, whose UserError ends the command.
    """
    adopt_orphans()
    before = psutil.Process().children(recursive=True)
    kills_before = oom_kills_so_far()
    start = time.monotonic()
    since = f"{environment.host()} {start!r} {time.time()!r}"
    # On one node gloo listens there, not on the address of the host's name.
    loopback = {} if command_line[0] == "srun" else {"GLOO_SOCKET_IFNAME": "lo"}
    reader = None
    try:
        # What a handler raises is lost in the hooks that Python runs after a fork.
        held_back = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        try:
            process = subprocess.Popen(
                command_line,
                env={**loopback, **variables, STARTED_VARIABLE: since},
                preexec_fn=partial(die_with, os.getpid()),
                close_fds=False,  # Inherits the lease.
                stdout=subprocess.PIPE if each_line else None,
                stderr=subprocess.STDOUT if each_line else None,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held_back)
        if each_line:
            reader = ThreadPoolExecutor(1).submit(_read, process, each_line)
        returncode, timed_out = process.wait(timeout=time_limit), False
    except subprocess.TimeoutExpired:
        returncode, timed_out = -signal.SIGKILL, True
    finally:
        _end_all_but(before)
    if reader:
        reader.result()
    took, kills = time.monotonic() - start, oom_kills_so_far() - kills_before
    return ProcessResult(returncode, timed_out, took, kills)


def _read(process: "subprocess.Popen[bytes]", each_line: Callable[[str], None]) -> None:
    """Pass each line of a process's output to a function; a UserError ends the process."""
    assert process.stdout is not None
    lines = io.TextIOWrapper(process.stdout, errors="replace")
    try:
        for line in lines:
            each_line(line)
    except UserError:
        process.terminate()
        for _ in lines:  # It may wait until somebody reads.
            pass
        raise


def oom_kills_so_far(membership: Path = MEMBERSHIP, mount: Path = MOUNT) -> int:
    """Return how many processes of our cgroup (version 2) the OOM killer has ended; 0 if unknown.

    A container may see the host's path and have its cgroup at the root of the mount.
    """
    try:
        path = membership.read_text().rpartition("0::/")[2].strip()
        own = mount / path / "memory.events"
        events = (own if own.exists() else mount / "memory.events").read_text()
        return int(dict(line.split() for line in events.splitlines())["oom_kill"])
    except (OSError, KeyError):
        return 0


def _end_all_but(before: list[psutil.Process]) -> None:
    """Send SIGTERM to our descendants that are not among `before`, later SIGKILL."""
    family = [p for p in psutil.Process().children(recursive=True) if p not in before]
    _, family = psutil.wait_procs(family, timeout=END_GRACE_SECONDS)
    for send in (psutil.Process.terminate, psutil.Process.kill):
        for member in family:
            with suppress(psutil.NoSuchProcess):
                send(member)
        _, family = psutil.wait_procs(family, timeout=KILL_GRACE_SECONDS)


@contextmanager
def terminable() -> Iterator[None]:
    """Within the block the first SIGTERM raises SystemExit; later ones are ignored."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        signal.signal(number, signal.SIG_IGN)
        sys.exit(128 + number)

    previous = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
