"""End a script on an error that the user can fix, or when the Snakemake above it ends."""

import os
import signal
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import psutil

Main = TypeVar("Main", bound=Callable[[], None])
SNAKEMAKE_VARIABLE = "SCALING_STUDY_SNAKEMAKE"
"""Variable with the process id of the Snakemake whose end also ends a script; may be empty."""
STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode's categories of control and formatting characters, and of halves of characters."""


class UserError(Exception):
    """An error that the user can fix. Its message is one sentence: what, where, what to do."""

    status = 1
    """The script's exit status."""


def printable(text: str) -> str:
    """Return `text` with escapes for control and formatting characters but tabs and line feeds."""
    steering = {one for one in text if unicodedata.category(one) in STEERING} - {"\t", "\n"}
    return text.translate({ord(one): ascii(one)[1:-1] for one in steering})


@contextmanager
def refused() -> Iterator[None]:
    """Within the block, a UserError ends this process with its message and status."""
    try:
        yield
    except UserError as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        sys.exit(error.status)


def program(main: Main) -> Main:
    """Decorate a script's main(), its last function; run it if the file is started."""
    if main.__module__ == "__main__":
        if snakemake := os.environ.get(SNAKEMAKE_VARIABLE):
            watched = (int(snakemake), os.getppid())
            threading.Thread(target=_end_with, args=watched, daemon=True).start()
        with refused():
            main()
    return main


def _end_with(*pids: int) -> None:
    """Send this process SIGTERM once one of these processes has ended."""
    with suppress(psutil.NoSuchProcess):
        watched = [psutil.Process(pid) for pid in pids]
        while all(process.status() != psutil.STATUS_ZOMBIE for process in watched):
            time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)
