"""Report each epoch of your own training script to the scaling study.

    from scaling_client import data_wait, epoch, step

    for number in range(1, epochs + 1):
        for batch in data_wait(loader):  # data_wait and step are optional
            with step():
                train(batch)
        epoch(number, samples=len(images), loss=loss)

Copy this file: it has no dependencies. Its functions print lines of JSON, which the study reads.
"""

import json
import os
import platform
import sys
import time
from contextlib import contextmanager
from statistics import median

_before = time.monotonic()
_steps, _waited, _introduced = [], 0.0, False
RANKS = "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "LOCAL_RANK"


def epoch(number, *, seconds=None, samples=None, loss=None, test_accuracy=None):
    """Wait for the GPU, then print one line of JSON: a report that epoch `number` has ended.

    Number epochs consecutively from 0 or 1. `seconds` is the duration of the epoch. By default,
    this is the time since the previous call or, in the first call, since the import of this module.
    `samples` is the number of training samples on all ranks. `loss` is their mean training loss.
    `test_accuracy` is a fraction from 0 to 1. None means unknown. Call this function on all ranks:
    rank 0 prints and, in scripts that use `step`, every rank prints.
    """
    global _before, _waited
    torch = _gpu()
    if torch:
        torch.cuda.synchronize()
    now = time.monotonic()
    values = {"seconds": now - _before if seconds is None else seconds, "samples": samples}
    values.update(loss=loss, test_accuracy=test_accuracy)
    rank = _rank()
    line = {key: float(value) for key, value in values.items() if value is not None}
    if _steps:
        # The host only launches steps on a GPU, so the GPU measures their time.
        took = [one if end is None else one.elapsed_time(end) / 1000 for one, end in _steps]
        line.update(rank=rank, steps=len(took), step_seconds=median(took), data_wait=_waited)
    if _steps or rank == 0:
        _print({**line, "epoch": number})
    _steps.clear()
    _waited = 0.0
    _before = time.monotonic()


@contextmanager
def step():
    """Time the training step in the `with` block. On a GPU, CUDA events do this without a wait."""
    torch = _gpu()
    if torch:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        yield
        end.record()
        _steps.append((start, end))
    else:
        began = time.perf_counter()
        yield
        _steps.append((time.perf_counter() - began, None))


def data_wait(batches):
    """Yield each item of `batches`, and time the wait for it.

    `epoch` prints the sum (s) if the script also calls `step`.
    """
    global _waited
    batches, nothing = iter(batches), object()
    while True:
        began = time.perf_counter()
        batch = next(batches, nothing)
        _waited += time.perf_counter() - began
        if batch is nothing:
            return
        yield batch


def _gpu():
    """Return the module torch if it uses a GPU, else None."""
    torch = sys.modules.get("torch")
    used = torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized()
    return torch if used else None


def _rank():
    ranks = sys.modules.get("torch.distributed")
    if ranks is not None and ranks.is_available() and ranks.is_initialized():
        return ranks.get_rank()
    return int(next((os.environ[name] for name in RANKS if name in os.environ), "0"))


def _print(line):
    """Write a line feed, which ends a progress bar's line, then `line` as JSON, in one call."""
    global _introduced
    text = ""
    if not _introduced and _rank() == 0:
        text = "\n" + json.dumps({"software": _software()})
    _introduced = True
    sys.stdout.write(f"{text}\n{json.dumps(line)}\n")
    sys.stdout.flush()


def _software():
    """Return the versions of Python, PyTorch, CUDA and NCCL, and the names of the GPUs."""
    torch, found = sys.modules.get("torch"), {"python": platform.python_version()}
    if torch is not None:
        found.update(torch=str(torch.__version__), cuda=torch.version.cuda)
    if _gpu():
        nccl, count = torch.cuda.nccl.version(), torch.cuda.device_count()
        found["nccl"] = ".".join(map(str, nccl)) if isinstance(nccl, tuple) else str(nccl)
        found["device_names"] = [torch.cuda.get_device_name(index) for index in range(count)]
    return found
