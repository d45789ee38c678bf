"""A worker that fails. FAULT=kind:rank:epoch is how it fails, on which rank, and after which epoch.

With recipe `plain`, the worker fails between epochs, or reports growing times up to the epoch. With
recipe `tuned`, it fails inside an epoch, before the second step.
"""

import dataclasses
import os
import signal
import time
from pathlib import Path

import torch

from scaling.launch import ranks
from scaling.launch.run_spec import RunSpec
from scaling.launch.stall import StepProgress
from scaling.training import eager, resident, worker
from scaling.training.eager import Eager
from scaling.training.resident import Resident


class FaultyEager(Eager):
    def run_epoch(self, epoch):
        kind, failing, last = os.environ["FAULT"].split(":")
        if kind == "slowing":
            found = super().run_epoch(epoch)
            said = 0.01 + 0.001 * min(epoch, int(last)) * (self._rank.index == int(failing))
            waited = min(found.loader_seconds, said)
            return dataclasses.replace(found, seconds=said, loader_seconds=waited)
        if is_due(self._rank, epoch):
            fail()
        return super().run_epoch(epoch)


class FaultyResident(Resident):
    def __init__(self, spec, rank, model, dataset):
        super().__init__(spec, rank, model, dataset)
        # As if the steps had been captured on a GPU.
        self.progress = self.progress or StepProgress(len(self._sizes), rank.device)

    def run_epoch(self, epoch):
        if is_due(self._rank, epoch):
            run, self.step.run = self.step.run, lambda size: (run(size), fail())
        return super().run_epoch(epoch)


def is_due(rank, epoch):
    _, failing, last_good_epoch = os.environ["FAULT"].split(":")
    return rank.index == int(failing) and epoch == int(last_good_epoch) + 1


def patient(join):
    """Return `join` with gloo's time limit set to an hour, as NCCL has in captured steps."""
    return lambda device, threads, limit: join(device, threads, limit if device == "cuda" else 3600)


def fail():
    match os.environ["FAULT"].partition(":")[0]:
        case "oom":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stuck":
            time.sleep(3600)
        case "stopped":
            os.kill(os.getpid(), signal.SIGSTOP)


def start(spec: RunSpec, images: Path, manifest: Path, instruments: str, folder: Path) -> None:
    eager.Eager, resident.Resident = FaultyEager, FaultyResident
    if spec.engine == "resident":
        ranks.join = patient(ranks.join)
    worker.start(spec, images, manifest, instruments, folder)
