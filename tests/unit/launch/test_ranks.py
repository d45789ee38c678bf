"""Where the ranks of one machine meet, and how they fork while gloo's threads sleep."""

import ctypes
import os
import signal
import sys
import threading
import time

import pytest
import torch

from scaling.launch import launcher, ranks

MEETING = """
import os, psutil
from scaling.launch import ranks

def run():
    rank = ranks.join("cpu", 1, 60)
    port = int(os.environ["MASTER_PORT"])
    rank.barrier()
    own = [c.laddr for c in psutil.Process().net_connections() if c.status == psutil.CONN_LISTEN]
    heard = rank.gather([address.ip for address in own if address.port == port])
    others = rank.gather([address.ip for address in own if address.port != port])
    if rank.is_first:
        print(heard, set(sum(others, [])), os.environ["GLOO_SOCKET_IFNAME"])
    rank.leave()

ranks.start(3, run)
"""


def test_they_meet_at_a_socket_of_rank_0_and_listen_where_only_this_machine_reaches(capfd):
    variables = os.environ | {"PYTHONPATH": ":".join(sys.path)}
    done = launcher.launch([sys.executable, "-c", MEETING], variables, 60)
    told = "[['127.0.0.1'], [], []] {'127.0.0.1'} lo\n"
    assert (done.returncode, capfd.readouterr().out) == (0, told)


class LockTaker(threading.Thread):
    """Takes Python's lock of its list of threads again and again, without the GIL, as gloo does."""

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
def test_a_fork_waits_for_threads_that_take_pythons_lock_and_its_child_runs(attempt):
    """Every second attempt fails where Python needs the wait and there is none."""
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
