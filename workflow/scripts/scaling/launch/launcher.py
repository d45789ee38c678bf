"""Launch the processes of a run with a time limit, end all of them, and read their reports.

Linux only. A report is a JSON line in a rank's log file, so reports survive the end of a rank.
Kinds of reports are `start` (versions), `startup` (seconds), `epoch`, `energy`, `outcome` (an error
that ended a rank), `end`, `readings` (of instruments), and `stacks` (of a rank ended by a signal).
"""

import ctypes
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import IO, Any, NoReturn

import psutil

KILL_GRACE_SECONDS = 3.0
END_GRACE_SECONDS = 1.0
"""Seconds that descendants have to end by themselves after the launched process has ended."""
STARTED_VARIABLE = "SCALING_STUDY_STARTED"
NODES_VARIABLE = "SCALING_STUDY_NODES"
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LinesByKind = dict[str, list[dict[str, Any]]]


class RankLog:
    """Appends reports of one rank to `folder/rank{rank}.jsonl`."""

    def __init__(self, folder: Path, rank: int) -> None:
        self.path = folder / f"rank{rank}.jsonl"
        self.rank = rank

    def append(self, kind: str, content: dict[str, Any]) -> None:
        """Append one report and close the file. If the process is killed later, nothing is lost."""
        line = json.dumps({"kind": kind, "rank": self.rank, **content}, allow_nan=False)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def read_logs(folder: Path) -> LinesByKind:
    """Return all complete reports in the logs of `folder` by kind, in order of ranks."""
    found = []
    for path in folder.glob("rank*"):
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.suffix == ".jsonl":
            found += [json.loads(line) for line in text.splitlines(True) if line.endswith("\n")]
        elif text:
            rank = int(path.stem.removeprefix("rank"))
            found.append({"kind": "stacks", "rank": rank, "text": text})
    return by_kind(sorted(found, key=lambda line: line["rank"]))


def by_kind(lines: Iterable[dict[str, Any]]) -> LinesByKind:
    """Return `lines` in a dictionary by their `kind`. A kind without lines gives []."""
    found: LinesByKind = defaultdict(list)
    for line in lines:
        found[line["kind"]].append({key: line[key] for key in line if key != "kind"})
    return found


@dataclass(frozen=True)
class ProcessResult:
    """How the processes of a launch ended, their reports (`lines`), and their environment."""

    returncode: int
    timed_out: bool
    seconds: float = 0.0
    lines: LinesByKind = field(default_factory=lambda: by_kind([]))
    environment: dict[str, Any] = field(default_factory=dict)

    def of(self, kind: str) -> list[Any]:
        """Return the values of the key `kind` in all reports of this kind, in order."""
        return [line[kind] for line in self.lines[kind]]


def elapsed() -> float:
    """Return the seconds since `launch` started the run; valid only on the machine of `launch`."""
    return time.monotonic() - float(os.environ[STARTED_VARIABLE])


def die_with(parent: int) -> None:
    """Let the kernel kill this process when `parent` dies, and unblock SIGTERM."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of orphaned descendants (subreaper), so that they can be ended later."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def reserve_port() -> int:
    """Return a TCP port that stays bound, without a listener, until this process ends.

    Another process can listen on the port if it sets SO_REUSEADDR, as PyTorch's store does.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("", 0))
    port = int(held.getsockname()[1])
    held.detach()
    return port


def command(words: list[str], gpus: int, nodes: int = 1) -> list[str]:
    """Return a command line of Python with arguments `words`; on several nodes, srun starts it."""
    own = [sys.executable, *words]
    if nodes == 1:
        return own
    srun = ["srun", f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"]
    # Otherwise a task is bound to one core, and sees all GPUs of an exclusive job.
    srun += ["--cpu-bind=none", f"--gpus-per-node={gpus // nodes}", "--kill-on-bad-exit=1"]
    meeting = [f"MASTER_ADDR={platform.node()}", f"MASTER_PORT={reserve_port()}"]
    return [*srun, "env", f"{NODES_VARIABLE}={nodes}", *meeting, *own]


def launch(
    command_line: list[str],
    variables: dict[str, str],
    time_limit: float,
    read: Callable[[IO[bytes]], None] | None = None,
) -> ProcessResult:
    """Run a command for at most `time_limit` seconds, then end all processes that it started.

    `variables` are the environment. `read`, if given, is called with the command's output stream.
    """
    adopt_orphans()
    before = psutil.Process().children(recursive=True)
    start = time.monotonic()
    # On one node gloo listens there, not on the address of the host's name.
    loopback = {} if command_line[0] == "srun" else {"GLOO_SOCKET_IFNAME": "lo"}
    try:
        # What a handler raises is lost in the hooks that Python runs after a fork.
        held_back = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        try:
            process = subprocess.Popen(
                command_line,
                env={**loopback, **variables, STARTED_VARIABLE: str(start)},
                preexec_fn=partial(die_with, os.getpid()),
                close_fds=False,  # Inherits the lease.
                stdout=subprocess.PIPE if read else None,
                stderr=subprocess.STDOUT if read else None,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held_back)
        if read:
            reader = Thread(target=read, args=[process.stdout])
            reader.start()
        returncode, timed_out = process.wait(timeout=time_limit), False
    except subprocess.TimeoutExpired:
        returncode, timed_out = -signal.SIGKILL, True
    finally:
        _end_all_but(before)
    if read:
        reader.join()
    return ProcessResult(returncode, timed_out, time.monotonic() - start)


def _end_all_but(before: list[psutil.Process]) -> None:
    """Send SIGTERM, later SIGKILL, to all descendants of this process except those in `before`."""
    family = [p for p in psutil.Process().children(recursive=True) if p not in before]
    _, family = psutil.wait_procs(family, timeout=END_GRACE_SECONDS)
    for send in (psutil.Process.terminate, psutil.Process.kill):
        for member in family:
            with suppress(psutil.NoSuchProcess):
                send(member)
        _, family = psutil.wait_procs(family, timeout=KILL_GRACE_SECONDS)


@contextmanager
def terminable() -> Iterator[None]:
    """In a `with` block, make the first SIGTERM raise SystemExit, and ignore later SIGTERMs."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        signal.signal(number, signal.SIG_IGN)
        sys.exit(128 + number)

    previous = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
