"""A process forks while the threads of its process group sleep."""

import ctypes
import os
import signal
import sys
import threading
import time

import pytest
import torch

from scaling.launch import ranks

ROUNDS = 200_000


class LockTaker(threading.Thread):
    """Takes Python's lock of its list of threads again and again, without the GIL, as gloo does."""

    def __init__(self):
        super().__init__()
        self.begun, self.ended = threading.Event(), threading.Event()
        self.start()

    def run(self):
        torch.multiprocessing._set_thread_name("pt_gloo_runloop")
        look_up = ctypes.cast(ctypes.pythonapi._PyInterpreterState_LookUpID, ctypes.c_void_p)
        rounds = ctypes.byref(ctypes.c_size_t(ROUNDS))
        self.begun.set()
        # It calls look_up(0, ...) for each of so many elements.
        ctypes.CDLL(None).lfind(None, None, rounds, 0, look_up)
        self.ended.set()


@pytest.fixture
def lock_takers():
    """Two threads of which one holds that lock at most times, for a short while."""
    threads = [LockTaker(), LockTaker()]
    for thread in threads:
        thread.begun.wait()
    yield threads
    for thread in threads:
        thread.join()


def ends(child, seconds=10):
    """Whether this child ends by itself, within so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if os.waitpid(child, os.WNOHANG) != (0, 0):
            return True
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def test_it_waits_for_threads_that_run_and_then_for_the_gil(lock_takers):
    ranks.wait_for_threads()
    assert all(thread.ended.is_set() for thread in lock_takers)


@pytest.mark.parametrize("attempt", range(10))
def test_what_is_forked_beside_threads_that_take_pythons_lock_runs(lock_takers, attempt):
    """Every second attempt fails where Python needs the wait and there is none."""
    if sys.version_info < ranks.FIRST_SAFE_FORK:
        ranks.wait_for_threads()
    child = os.fork()
    if not child:
        os._exit(0)
    assert ends(child)
