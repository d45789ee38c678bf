"""Fork a process that has gloo threads, without a deadlock in the child (a bug of some Pythons).

When a gloo thread ends a collective it drops Python objects, and for that registers as a Python
thread, without the GIL, under the lock of the list of threads. It holds the lock for less than a
microsecond, or for as long as another process occupies its core. A child forked just then waits for
the lock for ever, inside os.fork(). Python 3.11.10 and 3.12 reset it (gh-112275).
"""

import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

FIRST_WITHOUT_FAULT = (3, 11, 10)
THREADS = Path("/proc/self/task")
NAME_OF_PYTORCH = b"pt_"
PATIENCE_SECONDS = 5.0
"""A process forks anyway after this time: a thread that is busy for so long drops no objects."""


def beside_sleeping_threads() -> None:
    """Let this process fork only while PyTorch's threads sleep, on the Pythons that need it."""
    if sys.version_info < FIRST_WITHOUT_FAULT and THREADS.exists():
        os.register_at_fork(before=wait_for_threads)


def wait_for_threads() -> None:
    """Wait until no other PyTorch thread runs, in two consecutive checks.

    A sleeping thread does not hold the lock. Each check releases the GIL, so that a thread that
    sleeps because it waits for the GIL runs before the next one.
    """
    asleep, end = 0, time.monotonic() + PATIENCE_SECONDS
    while asleep < 2 and time.monotonic() < end:
        asleep = 0 if any(map(_runs, THREADS.iterdir())) else asleep + 1


def _runs(thread: Path) -> bool:
    """Return whether this is another PyTorch thread that runs or waits for a core."""
    if int(thread.name) == threading.get_native_id():
        return False
    with suppress(FileNotFoundError, ProcessLookupError):
        name, _, rest = (thread / "stat").read_bytes().partition(b"(")[2].rpartition(b") ")
        return name.startswith(NAME_OF_PYTORCH) and not rest.startswith(b"S")
    return False
