"""Errors that a user can fix (UserError), and a decorator for the `main` of a script."""

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
"""Environment variable with the process id of Snakemake. A script ends when Snakemake ends."""


class UserError(Exception):
    """An error that the user can fix. The message is one sentence: what, where, what to do."""

    status = 1
    """Exit status of a script that ends with this error."""


def printable(text: str) -> str:
    """Return `text` with unprintable characters escaped, except tabs, line ends and spaces."""
    kept = {one for one in text if one in "\t\n" or unicodedata.category(one) == "Zs"}
    return "".join(one if one.isprintable() or one in kept else ascii(one)[1:-1] for one in text)


@contextmanager
def refused() -> Iterator[None]:
    """If the `with` block raises UserError, print the error and exit with its `status`."""
    try:
        yield
    except UserError as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        sys.exit(error.status)


def program(main: Callable[..., None]) -> Callable[..., None]:
    """Return `main`. If the file of `main` was started as a script, call `main` first.

    A script that Snakemake started gets SIGTERM when Snakemake or the parent process has ended.
    """
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
