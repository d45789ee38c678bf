"""How a script ends: with an error that the user can act on, or with its own Snakemake."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import psutil

Main = TypeVar("Main", bound=Callable[[], None])

SNAKEMAKE_VARIABLE = "SCALING_STUDY_SNAKEMAKE"
"""Which Snakemake a script ends with: a `process_name`, empty for none."""
PID_NAMESPACE = Path("/proc/self/ns/pid")
POLL_SECONDS = 0.5


class UserError(Exception):
    """A mistake that the user can fix. Its message is one sentence: what, where, what to do."""


def program(main: Main) -> Main:
    """Run a script's main(), the last of its module, where that is what was started.

    A UserError ends it with its one sentence and exit status 1, the end of its Snakemake, or of the
    shell between, as SIGTERM does: Snakemake that is killed takes none of its jobs along.
    """
    if main.__module__ == "__main__":
        if snakemake := os.environ.get(SNAKEMAKE_VARIABLE):
            watch = (snakemake, process_name(os.getppid()))
            threading.Thread(target=_end_with, args=watch, daemon=True).start()
        try:
            main()
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
            sys.exit(1)
    return main


def process_name(pid: int) -> str:
    """The name of a process that no other one has: where its number counts, and the number."""
    return f"{PID_NAMESPACE.readlink()} {pid}" if PID_NAMESPACE.exists() else ""


def _end_with(*names: str) -> None:
    """Send this process SIGTERM once one of those of its own namespace has ended."""
    here = process_name(os.getpid()).split()[:1]
    pids = [int(name.split()[1]) for name in names if here and name.split()[:1] == here]
    while all(map(_runs, pids)):
        time.sleep(POLL_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
