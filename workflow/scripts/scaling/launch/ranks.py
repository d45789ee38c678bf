"""The processes of one run: who am I, on which device, and who waits for whom."""

import os
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch.multiprocessing import (
    ProcessExitedException,
    ProcessRaisedException,
    start_processes,
)

from scaling.core import environment
from scaling.core.environment import Device
from scaling.launch import launcher, safe_fork

T = TypeVar("T")


@dataclass(frozen=True)
class Rank:
    """One process of a run. `processes` is 1 for DataParallel and for one GPU."""

    index: int
    local_index: int
    processes: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """Whether this rank speaks for all."""
        return self.index == 0

    def barrier(self) -> None:
        """Wait until every rank is here."""
        if self.processes > 1:
            dist.barrier(device_ids=[self.local_index] if self.device.type == "cuda" else None)

    def gather(self, own: T) -> list[T]:
        """Give every rank what each of them has, in their order."""
        found = [own] * self.processes
        if self.processes > 1:
            dist.all_gather_object(found, own)
        return found

    def leave(self) -> None:
        """End the process group."""
        if self.processes > 1:
            dist.destroy_process_group()

    def synchronize(self, gpus: int) -> None:
        """Wait until this process's devices are idle: its own one, or `gpus` for DataParallel."""
        if self.device.type == "cuda":
            for index in range(gpus) if self.processes == 1 else [self.local_index]:
                torch.cuda.synchronize(index)


GRACE_SECONDS = 5.0
"""How long the other ranks may take to fail by themselves once one has: who does not, hung."""


STORE_VARIABLE = "SCALING_STUDY_STORE"
"""The file descriptor of the socket that ranks on one machine meet at."""
QUICK_DUMPS = ("TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "500")
"""Once a collective has timed out, PyTorch waits four times this before it ends the rank.

Its own 15 s, for dumps that nobody reads here, would add a minute to the configured timeout.
"""


def start(processes: int, run: Callable[..., None], *arguments: object) -> None:
    """Call `run(*arguments)` in so many processes, and exit with status 1 when one of them fails.

    They are forks of this one, so that PyTorch is imported once for all. It must not have touched a
    GPU. Under torchrun, or for one process, `run` is called here.
    """
    if processes == 1 or launcher.under_torchrun():
        run(*arguments)
        return
    # Ranks die with their parent: who ends them all by SIGTERM gets their last words first.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # Rank 0 inherits it: nobody else can have the port, and no other machine reaches it.
    with socket.create_server(("127.0.0.1", 0), backlog=processes) as store:
        context = start_processes(
            _run_as_rank,
            (processes, store, os.getpid(), run, arguments),
            nprocs=processes,
            join=False,
            start_method="fork",
        )
    try:
        while not context.join(grace_period=GRACE_SECONDS):
            pass
    except (ProcessExitedException, ProcessRaisedException):
        sys.exit(1)


def _run_as_rank(
    index: int,
    processes: int,
    store: socket.socket,
    parent: int,
    run: Callable[..., None],
    arguments: tuple[object, ...],
) -> None:
    launcher.die_with(parent)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", STORE_VARIABLE)
    values = (index, index, processes, *store.getsockname(), store.detach())
    os.environ.update(zip(names, map(str, values), strict=True))
    run(*arguments)


def join(device: Device, cpu_threads: int, timeout_seconds: float) -> Rank:
    """This process's rank, from its environment; starts NCCL or gloo for several.

    Each of several ranks sees its own GPU alone, as the first one: PyTorch keeps compiled code by
    the device's number, and so all ranks find what one has compiled.
    """
    index, local_index, processes = (
        int(os.environ.get(name, default))
        for name, default in (("RANK", 0), ("LOCAL_RANK", 0), ("WORLD_SIZE", 1))
    )
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
        timeout = timedelta(seconds=timeout_seconds)
        dist.init_process_group(
            backend(device),
            timeout=timeout,
            store=_store(index, processes, timeout),
            rank=index,
            world_size=processes,
            device_id=own if own.type == "cuda" else None,
        )
        safe_fork.beside_sleeping_threads()
    return Rank(index, local_index, processes, own)


def _store(index: int, processes: int, timeout: timedelta) -> dist.TCPStore | None:
    """Where ranks of `start` meet: rank 0 serves the socket they inherited. None: torchrun's."""
    fd = os.environ.get(STORE_VARIABLE)
    if fd is None:
        return None
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if index == 0:
        return dist.TCPStore(host, port, processes, True, timeout, master_listen_fd=int(fd))
    os.close(int(fd))
    return dist.TCPStore(host, port, processes, False, timeout)


def backend(device: Device) -> str:
    """The library that carries the collectives: NCCL between GPUs, gloo between CPU processes."""
    return "nccl" if device == "cuda" else "gloo"


def versions(device: Device) -> dict[str, Any]:
    """Where this process is, `host`, its GPUs, and what only torch knows: `cuda`, `nccl`."""
    nccl = ".".join(map(str, torch.cuda.nccl.version())) if device == "cuda" else None
    return {
        **environment.leased_gpus(environment.visible_gpus() if device == "cuda" else []),
        "host": environment.host(),
        "slurm_gpus": environment.slurm_gpus(),
        "cuda": torch.version.cuda if device == "cuda" else None,
        "nccl": nccl,
    }
