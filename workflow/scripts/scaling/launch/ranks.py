"""Start the processes of a run, join them in a process group, and log their start and end."""

import faulthandler
import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException, start_processes

from scaling.core import command_line, environment
from scaling.core.environment import Device
from scaling.launch import launcher
from scaling.launch.launcher import RankLog
from scaling.registry.registry import Reference

T = TypeVar("T")
GRACE_SECONDS = 5.0
"""Seconds that other ranks have to report after one fails. Silent ranks then count as hung."""
STORE_VARIABLE = "SCALING_STUDY_STORE"
"""Environment variable: file descriptor of the socket on which rank 0 serves the TCPStore."""
QUICK_DUMPS = ("TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "500")
"""Environment variable and value in ms. After an NCCL timeout, PyTorch waits for debug dumps for
four times this value. By default, it waits longer."""
FIRST_SAFE_FORK = (3, 11, 10)
FORK_PATIENCE_SECONDS = 5.0
"""Maximum seconds that `wait_for_threads` waits before a fork."""


@dataclass(frozen=True)
class Rank:
    """One training process and its device. `processes` counts all ranks: 1 for DataParallel."""

    index: int
    local_index: int
    processes: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """Whether this process is rank 0."""
        return self.index == 0

    def barrier(self) -> None:
        """Wait until all ranks have called this method."""
        if self.processes > 1:
            dist.barrier(device_ids=[self.local_index] if self.device.type == "cuda" else None)

    def gather(self, own: T) -> list[T]:
        """Return, on every rank, the list of all ranks' values of `own`, in the order of ranks."""
        found = [own] * self.processes
        if self.processes > 1:
            dist.all_gather_object(found, own)
        return found

    def leave(self) -> None:
        """Destroy the process group."""
        if self.processes > 1:
            dist.destroy_process_group()

    def stopwatch(self) -> Callable[[], float]:
        """Start a stopwatch. Return a function that returns the seconds since the start.

        On a GPU, CUDA events in the current stream mark both times. The function waits until the
        second event has occurred.
        """
        if self.device.type == "cpu":
            started = time.perf_counter()
            return lambda: time.perf_counter() - started
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()

        def elapsed() -> float:
            last.record()
            last.synchronize()
            return float(first.elapsed_time(last)) / 1000

        return elapsed

    def synchronize(self, gpus: int) -> None:
        """Wait until this rank's GPU is idle; with DataParallel, until all `gpus` GPUs are idle."""
        if self.device.type == "cuda":
            for index in range(gpus) if self.processes == 1 else [self.local_index]:
                torch.cuda.synchronize(index)


def main() -> None:
    """Call the function named in job.json. The last command-line argument is the path of job.json.

    The function gets the arguments in job.json, and an argument `folder`: the folder of job.json,
    to which ranks write their reports.
    """
    path = Path(sys.argv[-1])
    job = json.loads(path.read_text(encoding="utf-8"))
    arguments = job["arguments"] | {"folder": str(path.parent)}
    command_line.call(Reference(job["run"]).load(), json.dumps(arguments))


def start(processes: int, run: Callable[..., None], *arguments: object) -> None:
    """Call `run(*arguments)` in `processes` processes; exit with status 1 if one of them fails.

    On each node, this process forks the node's share of the processes. It must not have initialized
    CUDA. A single process is not forked.
    """
    if processes == 1:
        run(*arguments)
        return
    parent, nodes = os.getpid(), int(os.environ.get(launcher.NODES_VARIABLE, "1"))
    here = processes // nodes
    first = here * int(os.environ["SLURM_NODEID"]) if nodes > 1 else 0

    def run_as_rank(local: int) -> None:
        launcher.die_with(parent)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        rank: dict[str, Any] = {"RANK": first + local, "LOCAL_RANK": local}
        if nodes == 1:
            host, port = store.getsockname()
            rank |= {"MASTER_ADDR": host, "MASTER_PORT": port, STORE_VARIABLE: store.detach()}
        rank["WORLD_SIZE"] = processes
        os.environ |= {name: str(value) for name, value in rank.items()}
        run(*arguments)

    # The parent ignores SIGTERM: ranks die with it, but have to report first.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # Rank 0 inherits the socket, so its port is reserved. Other machines cannot reach it.
    with socket.create_server(("127.0.0.1", 0), backlog=processes) as store:
        context = start_processes(run_as_rank, nprocs=here, join=False, start_method="fork")
    try:
        while not context.join(grace_period=GRACE_SECONDS):
            pass
    except (ProcessExitedException, ProcessRaisedException):
        sys.exit(1)


def join(device: Device, cpu_threads: int, timeout_seconds: float) -> Rank:
    """Join the process group; return this process's rank, which environment variables determine.

    The group uses NCCL or gloo; a single process has no group. If there are several ranks, each
    sees only its own GPU, as device 0. Compiled code contains this number, which is the same on all
    ranks. Ranks can therefore share compiled code.
    """
    index, local_index = (int(os.environ.get(name, "0")) for name in ("RANK", "LOCAL_RANK"))
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    torch.set_num_threads(cpu_threads)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    if device == "cuda" and processes > 1 and len(visible) > 1:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible[local_index]
        local_index = 0
    own = torch.device("cpu") if device == "cpu" else torch.device("cuda", local_index)
    if own.type == "cuda":
        torch.cuda.set_device(own)
    if processes > 1:
        os.environ.setdefault(*QUICK_DUMPS)
        timeout, store = timedelta(seconds=timeout_seconds), None
        if fd := os.environ.get(STORE_VARIABLE):  # On one node, rank 0 serves it.
            place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), processes
            if index:
                os.close(int(fd))
            served = None if index else int(fd)
            store = dist.TCPStore(*place, not index, timeout, master_listen_fd=served)
        dist.init_process_group(
            backend(device),
            timeout=timeout,
            store=store,
            rank=index,
            world_size=processes,
            device_id=own if own.type == "cuda" else None,
        )
        if sys.version_info < FIRST_SAFE_FORK:
            os.register_at_fork(before=wait_for_threads)
    return Rank(index, local_index, processes, own)


def wait_for_threads() -> None:
    """Before a fork, wait until two checks in a row find all other PyTorch threads asleep.

    Before Python 3.11.10, a gloo thread takes a lock without the GIL when a collective ends. If a
    child is forked at that moment, it waits for the lock forever (gh-112275). A sleeping thread
    does not hold the lock. Each check releases the GIL, so that threads that wait for it can run.
    """
    asleep, end = 0, time.monotonic() + FORK_PATIENCE_SECONDS
    while asleep < 2 and time.monotonic() < end:
        asleep += 1
        for thread in Path("/proc/self/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                name, _, rest = (thread / "stat").read_bytes().partition(b"(")[2].rpartition(b") ")
                own = int(thread.name) == threading.get_native_id()
                if name.startswith(b"pt_") and not rest.startswith(b"S") and not own:
                    asleep = 0


def backend(device: Device) -> str:
    """Return the backend of the process group: "nccl" on GPUs, "gloo" on a CPU."""
    return "nccl" if device == "cuda" else "gloo"


def versions(device: Device) -> dict[str, Any]:
    """Return this rank's host, machine and GPUs, and versions of CUDA and NCCL (None on a CPU)."""
    on_gpu = device == "cuda"
    return {
        **environment.leased_gpus(environment.visible_gpus() if on_gpu else []),
        "host": environment.host(),
        "machine": environment.machine(device),
        "slurm_gpus": environment.slurm_gpus(),
        "cuda": torch.version.cuda if on_gpu else None,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())) if on_gpu else None,
    }


@contextmanager
def process(
    log_folder: Path, report: Callable[[RankLog, Exception], None] | None = None
) -> Iterator[RankLog]:
    """Yield the log of this rank. After an exception, call `report` and end the process at once.

    An orderly shutdown could wait forever for a rank that hangs in a collective.
    """
    launcher.die_with(os.getppid())
    log = RankLog(log_folder, int(os.environ.get("RANK", "0")))
    # On SIGTERM or a fatal signal, faulthandler writes the stacks of all threads there.
    with log.path.with_suffix(".stacks").open("w", encoding="utf-8") as stacks:
        faulthandler.enable(stacks)
        faulthandler.register(signal.SIGTERM, stacks, chain=True)
        try:
            yield log
        except Exception as error:
            traceback.print_exc()
            try:
                if report:
                    report(log, error)
            finally:
                os._exit(1)
        finally:
            faulthandler.unregister(signal.SIGTERM)
            faulthandler.disable()


@contextmanager
def joined(
    log_folder: Path, requested: Device, cpu_threads: int, timeout_seconds: float
) -> Iterator[tuple[Rank, RankLog]]:
    """Join the process group; yield this rank and its log. Log the reports `start` and `end`."""
    device = environment.resolve_device(requested)
    with process(log_folder) as log:
        rank = join(device, cpu_threads, timeout_seconds)
        log.append("start", versions(device))
        yield rank, log
        rank.barrier()
        log.append("end", {})
        rank.leave()


if __name__ == "__main__":
    main()
