"""Forks beside the threads of a process group, on a Python that leaves a lock of theirs locked.

A thread of gloo that has ended a collective drops the Python objects of it. For that it becomes a
thread of Python's first, without the GIL, and holds the lock of the list of such threads meanwhile:
for less than a microsecond, or for as long as another process has its core. What is forked just
then waits for that lock without end, inside os.fork(). Python 3.11.10 and 3.12 reset it
(gh-112275).
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
"""After which a process forks anyway: a thread that is busy for so long drops nothing."""


def beside_sleeping_threads() -> None:
    """From now on, have this process fork while PyTorch's threads sleep, where that is needed."""
    if sys.version_info < FIRST_WITHOUT_FAULT and THREADS.exists():
        os.register_at_fork(before=wait_for_threads)


def wait_for_threads() -> None:
    """Wait until no other thread of PyTorch runs, in two looks on end.

    Who sleeps does not hold that lock. A look lets go of the GIL, so that a thread which sleeps
    because it waits for the GIL runs at the next one.
    """
    asleep, end = 0, time.monotonic() + PATIENCE_SECONDS
    while asleep < 2 and time.monotonic() < end:
        asleep = 0 if any(map(_runs, THREADS.iterdir())) else asleep + 1


def _runs(thread: Path) -> bool:
    """Whether this is a thread of PyTorch, not the caller's, that runs or waits for a core."""
    if int(thread.name) == threading.get_native_id():
        return False
    with suppress(FileNotFoundError, ProcessLookupError):
        name, _, rest = (thread / "stat").read_bytes().partition(b"(")[2].rpartition(b") ")
        return name.startswith(NAME_OF_PYTORCH) and not rest.startswith(b"S")
    return False
