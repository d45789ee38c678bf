"""End a script with a message after a user's error, or by SIGTERM when its Snakemake has ended."""

import os
import signal
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psutil

SNAKEMAKE_VARIABLE = "SCALING_STUDY_SNAKEMAKE"
"""Environment variable with Snakemake's process id, or "". A script ends when Snakemake does."""
STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode categories of control, formatting and surrogate characters, and of line separators."""


class UserError(Exception):
    """An error that the user can fix. The message is one sentence: what, where, what to do."""

    status = 1
    """Exit status of a script that ends with this error."""


def printable(text: str) -> str:
    """Return `text` with the characters of `STEERING` escaped, except tabs and line feeds."""
    steering = {one for one in text if unicodedata.category(one) in STEERING} - {"\t", "\n"}
    return text.translate({ord(one): ascii(one)[1:-1] for one in steering})


@contextmanager
def refused() -> Iterator[None]:
    """In a `with` block, let a UserError end the process with a message and an exit status."""
    try:
        yield
    except UserError as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        sys.exit(error.status)


def program(main: Callable[..., None]) -> Callable[..., None]:
    """Return `main` unchanged, after a call of `main` if its file was started as a script."""
    if main.__module__ == "__main__":
        if snakemake := os.environ.get(SNAKEMAKE_VARIABLE):
            watched = (int(snakemake), os.getppid())
            threading.Thread(target=_end_with, args=watched, daemon=True).start()
        with refused():
            main()
    return main


def _end_with(*pids: int) -> None:
    """Wait until one of the processes `pids` has ended, then send SIGTERM to this process."""
    with suppress(psutil.NoSuchProcess):
        watched = [psutil.Process(pid) for pid in pids]
        while all(process.status() != psutil.STATUS_ZOMBIE for process in watched):
            time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)
