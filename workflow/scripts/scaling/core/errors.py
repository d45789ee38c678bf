"""How a script ends: with an error that the user can act on, or with its own Snakemake."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import psutil

Main = TypeVar("Main", bound=Callable[[], None])
SNAKEMAKE_VARIABLE = "SCALING_STUDY_SNAKEMAKE"
"""The id of the Snakemake that a script ends with, empty for none."""


class UserError(Exception):
    """A mistake that the user can fix. Its message is one sentence: what, where, what to do."""


@contextmanager
def refused() -> Iterator[None]:
    """Within the block a UserError ends this process with its one sentence."""
    try:
        yield
    except UserError as error:
        sys.exit(f"error: {error}")


def program(main: Main) -> Main:
    """Run a script's main(), the last of its module, where that is what was started.

    A UserError ends it with its one sentence and exit status 1, the end of its Snakemake, or of the
    shell between, as SIGTERM does: Snakemake that is killed takes none of its jobs along.
    """
    if main.__module__ == "__main__":
        if snakemake := os.environ.get(SNAKEMAKE_VARIABLE):
            watched = (int(snakemake), os.getppid())
            threading.Thread(target=_end_with, args=watched, daemon=True).start()
        with refused():
            main()
    return main


def _end_with(*pids: int) -> None:
    """Send this process SIGTERM once one of those has ended."""
    with suppress(psutil.NoSuchProcess):
        watched = [psutil.Process(pid) for pid in pids]
        while all(process.status() != psutil.STATUS_ZOMBIE for process in watched):
            time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)
