"""train_run.py's worker with a fault planted: FAULT=kind:rank:epoch fails after that epoch."""

import os
import signal
import time

import torch

import train_run
from scaling import worker
from scaling.recipes.course import Course


class FaultyCourse(Course):
    def run_epoch(self, epoch):
        kind, rank, last_good_epoch = os.environ["FAULT"].split(":")
        if self._rank.index == int(rank) and epoch == int(last_good_epoch) + 1:
            fail(kind)
        return super().run_epoch(epoch)


def fail(kind):
    match kind:
        case "oom":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        case "oom_host":
            raise MemoryError("Cannot allocate memory")
        case "error":
            raise KeyError("a bug")
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stuck":
            time.sleep(3600)


if __name__ == "__main__":
    worker.RECIPES["course"] = FaultyCourse
    train_run.main()
