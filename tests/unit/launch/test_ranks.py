"""A rank forks only while the threads of gloo sleep, and reports steps that do not end."""

import ctypes
import os
import signal
import sys
import threading
import time
from queue import SimpleQueue

import pytest
import torch

from scaling.launch import ranks, stall
from scaling.launch.stall import Progress


class LockTaker(threading.Thread):
    """Repeatedly takes the lock of Python's list of threads, without the GIL, as gloo does."""

    def __init__(self):
        super().__init__()
        self.begun, self.ended = threading.Event(), threading.Event()
        self.start()

    def run(self):
        torch.multiprocessing._set_thread_name("pt_gloo_runloop")
        look_up = ctypes.cast(ctypes.pythonapi._PyInterpreterState_LookUpID, ctypes.c_void_p)
        rounds = ctypes.byref(ctypes.c_size_t(200_000))
        self.begun.set()
        # It calls look_up(0, ...) for each of so many elements.
        ctypes.CDLL(None).lfind(None, None, rounds, 0, look_up)
        self.ended.set()


@pytest.mark.parametrize("attempt", range(4))
def test_fork_waits_for_threads_with_pythons_lock(attempt):
    """Without the wait, half of the attempts would fail with affected versions of Python."""
    threads = [LockTaker(), LockTaker()]
    for thread in threads:
        thread.begun.wait()
    if sys.version_info < ranks.FIRST_SAFE_FORK or not attempt:
        ranks.wait_for_threads()
        assert all(thread.ended.is_set() for thread in threads)
    child = os.fork()
    if not child:
        os._exit(0)
    end = time.monotonic() + 10
    while not (ended := os.waitpid(child, os.WNOHANG)[0]) and time.monotonic() < end:
        time.sleep(0.01)
    if not ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    for thread in threads:
        thread.join()
    assert ended


def at(finished, training=1, launched=20, epoch=2):
    return Progress(training, epoch, launched, finished)


@pytest.mark.parametrize(
    ("positions", "said"),
    [
        ([at(0), at(2), at(4), at(4)], "after step 4 of epoch 2, 20 launched"),
        ([at(0), at(0, training=2), None, None, at(1), at(1)], "after step 1 of epoch 2"),
        ([at(4, launched=8), at(4, launched=12)], "after step 4 of epoch 2, 12 launched"),
        ([at(0, epoch=0)] * 2, "after step 0 of the steps after the last epoch, 20 launched"),
    ],
)
def test_stall_is_no_finished_step_between_two_looks(monkeypatch, positions, said):
    monkeypatch.setattr(stall, "POLL_SECONDS", 0.02)
    looks, told = iter(positions), SimpleQueue()
    stall.watch(lambda: next(looks), 0.01, told.put)
    error = told.get(timeout=30)
    assert str(error).partition(" s ")[2].startswith(said)
    assert error.position == positions[-1] and next(looks, None) is None
