"""Locks on GPUs and the CPU, so that no two timed jobs of a machine use one device at once.

A lease is an abstract socket (`man 7 unix`) named by the device's UUID. Child processes inherit it.
"""

import errno
import os
import socket
import struct
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any

import psutil

from scaling.core import environment
from scaling.core.environment import gpu_uuid, host
from scaling.core.errors import UserError

ADDRESS = "\0scaling-study/{}"
POLL_SECONDS = 1.0
PATIENCE_SECONDS = 3600.0
"""Maximum seconds that a job waits for free GPUs or a free CPU."""
SHARE_VARIABLE = "SCALING_STUDY_SHARE"
"""Environment variable that allows several CPU jobs at a time (`machine.share`)."""
FREE = "is free"


def cpu(patience: float = PATIENCE_SECONDS) -> AbstractContextManager[list[str]]:
    """Lock this machine's CPU during a `with` block, unless jobs may share the CPU.

    Wait for at most `patience` seconds. Yield a list with the CPU's name, or [] without a lock.
    """
    names = _cpus()
    return gpus(len(names), names, patience, "CPUs")


def _cpus() -> list[str]:
    return [] if os.environ.get(SHARE_VARIABLE) else [f"the CPU of {host()}"]


@contextmanager
def gpus(
    count: int, candidates: list[str], patience: float = PATIENCE_SECONDS, kind: str = "GPUs"
) -> Iterator[list[str]]:
    """Yield `count` of the `candidates` (CUDA_VISIBLE_DEVICES entries), locked during the block.

    If too few are free, wait without a lock, and print once which processes hold the candidates.
    UserError after `patience` seconds, or for too few candidates. `kind` is a word for messages.
    """
    if count > len(candidates):
        raise UserError(
            f"{count} GPUs are required, but this job may use {len(candidates)} "
            f"({', '.join(candidates) or 'none'}): request {count} from the scheduler, or use fewer"
        )
    uuids = {candidate: gpu_uuid(candidate) for candidate in candidates}
    started, what, waits = time.monotonic(), f"{count} of {len(uuids)} {kind}", ""
    while True:
        with ExitStack() as held:
            names: list[str] = []
            for candidate, uuid in uuids.items():
                if len(names) < count and (own := _take(uuid)):
                    held.enter_context(own)
                    names.append(candidate)
            if len(names) == count:
                yield names
                return
        others = "; ".join(f"{uuid} {_holder(uuid)}" for uuid in uuids.values())
        if time.monotonic() - started >= patience:
            raise UserError(
                f"timed out after {patience:g} s waiting for {what}: {others}; run it again "
                "when they have ended, or set CUDA_VISIBLE_DEVICES to other GPUs"
            )
        if not waits:
            waits = f"waits for {what}, for at most {patience:g} s: {others}"
            print(waits, file=sys.stderr, flush=True)
        time.sleep(POLL_SECONDS)


def waits_for(requested: environment.Device, count: int) -> str:
    """Return text on the processes that block a job on device `requested` (`count` GPUs), or ""."""
    on_gpu = environment.resolve_device(requested) == "cuda"
    names = environment.visible_gpus() if on_gpu else _cpus()
    held = [f"{name} {holder}" for name in names if (holder := _holder(gpu_uuid(name))) != FREE]
    return "; ".join(held) if len(names) - len(held) < (count if on_gpu else len(names)) else ""


@contextmanager
def device(requested: environment.Device) -> Iterator[Any]:
    """Yield the torch.device to compute on; a GPU is locked during the block."""
    import torch

    if environment.resolve_device(requested) == "cpu":
        yield torch.device("cpu")
        return
    with gpus(1, environment.visible_gpus()) as (name,):
        os.environ |= {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": name}
        yield torch.device("cuda:0")


def _take(uuid: str) -> socket.socket | None:
    """Return a new lease of the device `uuid`; None if another process holds it."""
    own = socket.socket(socket.AF_UNIX)
    own.set_inheritable(True)
    try:
        own.bind(ADDRESS.format(uuid))
        own.listen(socket.SOMAXCONN)
    except OSError as error:
        own.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise
    return own


def _holder(uuid: str) -> str:
    """Return text on the process, user and command that hold a device's lease, or "is free"."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.setblocking(False)
        try:
            asking.connect(ADDRESS.format(uuid))
        except OSError:
            return FREE
        credentials = asking.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")
        )
    pid, user, _ = struct.unpack("3i", credentials)
    command = "another user's, or ended while what it started has not"
    with suppress(psutil.Error):
        command = textwrap.shorten(" ".join(psutil.Process(pid).cmdline()), 200)
    return f"is held by process {pid} of user {user} ({command})"
