"""train_run.py's worker with a fault planted, as FAULT=kind:rank:epoch says."""

import os
import signal
import sys
import time

import torch

import train_run
from scaling import supervisor, worker
from scaling.recipes import course


def train_with_fault(spec, rank, model, data, mean, std, report):
    kind, faulty_rank, faulty_epoch = os.environ["FAULT"].split(":")

    def report_then_fail(row):
        report(row)
        if rank.index != int(faulty_rank) or row["epoch"] != int(faulty_epoch):
            return
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

    return course.train(spec, rank, model, data, mean, std, report_then_fail)


if __name__ == "__main__":
    worker.RECIPES["course"] = train_with_fault
    args = train_run.parse(sys.argv[1:])
    worker.run(
        train_run.spec_from(args), args.dataset, args.manifest, supervisor.log_folder(args.output)
    )
