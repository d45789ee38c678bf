"""Measure where the time of a run's steps goes, in extra iterations on batches in memory.

No rank waits for data there, its own or another one's. All are over at most `limit` iterations:
the time of the steps, with gradient exchange and without; a trace of the kernels; and the log that
DistributedDataParallel keeps. The trace and the log give a measurement, a dict: `estimate`, `rank`,
`iterations` it covers, and their `communication_seconds`, `exposed_seconds` and
`overlapped_seconds`, or a `note` that says why they are missing. A communication kernel runs until
all ranks have joined it: waiting for the slowest rank is part of its time.
"""

from contextlib import nullcontext
from statistics import median
from typing import Any

from torch.nn.parallel import DistributedDataParallel

from scaling.instruments import kernel_trace
from scaling.launch.ranks import Rank
from scaling.training.trainer import Trainer, TrainIterations

Measurement = dict[str, Any]

SETTLING_ITERATIONS = 2
REPEATS = 3
NANOSECOND = 1e-9


def measure_all(trainer: Trainer, rank: Rank, gpus: int, limit: int) -> dict[str, Any]:
    """Measure the steps of this rank of a run on `gpus` GPUs.

    `in_memory`: `iterations` and `samples` of this rank, the `seconds` they took in each repeat,
    and `seconds_without_exchange`, null on one GPU and where the strategy cannot leave gradients
    out. `readings`: the measurements of communication, none on one GPU. `device_time`: of each
    device of this rank what `Trace.by_device` says, beside the host's `seconds` of the same
    iterations, untraced: on several GPUs a device that waits for another rank does so inside a
    communication kernel, which is no gap and no compute either. A CPU, which runs no kernels, has
    0 iterations of it and a `note`.
    """
    own = {"rank": rank.index}
    on_gpu = rank.device.type == "cuda"
    train = trainer.in_memory(limit)
    in_memory = _in_memory(trainer, train, limit)
    found: dict[str, Any] = {
        "in_memory": own | in_memory,
        "readings": [],
        "device_time": [{**own, "iterations": 0, "note": "a CPU runs no kernels"}],
    }
    if gpus == 1 and not on_gpu:
        return found
    train(SETTLING_ITERATIONS)
    trace, traced = kernel_trace.record(train, limit, rank)
    if on_gpu:
        # Tracing delays launches, not what runs, so the gaps between kernels are these seconds of
        # the host less the busy ones, not those of the trace.
        seconds = {"iterations": traced.iterations, "seconds": median(in_memory["seconds"])}
        found["device_time"] = [{**own, **seconds, **each} for each in trace.by_device()]
    if gpus > 1:
        spans, told = trace.communicating(), "the trace shows no communication"
        by_trace = _reading("profiler", traced.iterations, spans, told)
        found["readings"] = [own | by_trace, own | _ddp_log(trainer, train, limit)]
    return found


def _in_memory(trainer: Trainer, train: TrainIterations, limit: int) -> Measurement:
    """Time the same iterations with and, where that is possible, without exchange, in turn."""
    leaves_out = trainer.without_communication() is not None
    with_it, without = [], []
    for _ in range(REPEATS):
        train(SETTLING_ITERATIONS)
        with_it.append(train(limit))
        if leaves_out:
            with trainer.without_communication() or nullcontext():
                train(SETTLING_ITERATIONS)
                without.append(train(limit))
    return {
        "iterations": with_it[0].iterations,
        "samples": with_it[0].samples,
        "seconds": [result.seconds for result in with_it],
        "seconds_without_exchange": [result.seconds for result in without] or None,
    }


def _ddp_log(trainer: Trainer, train: TrainIterations, limit: int) -> Measurement:
    """Add up what DDP's reducer logs of its all-reduces, iteration by iteration.

    Its own averages reach back to the first epochs, where ranks waited for one another's data.
    """
    model = trainer.model
    if not isinstance(model, DistributedDataParallel):
        return _reading("ddp_log", 0, None, "the cell does not use DistributedDataParallel")
    model._set_ddp_runtime_logging_sample_rate(1)
    iterations = train(limit).iterations
    logged = []
    for _ in range(iterations):
        train(1)
        logged.append(model._get_ddp_logging_data())
    total, hidden = (
        sum(float(entry.get(name, 0)) for entry in logged) * NANOSECOND
        for name in ("backward_comm_time", "backward_compute_comm_overlap_time")
    )
    told = "DistributedDataParallel logged no communication time"
    return _reading("ddp_log", iterations, (total, hidden) if total > 0 else None, told)


def _reading(
    estimate: str, iterations: int, spans: tuple[float, float] | None, note: str
) -> Measurement:
    """The seconds of all communication and of its hidden part, or a note where there is none."""
    if spans is None:
        return {"estimate": estimate, "iterations": 0, "note": note}
    total, hidden = spans
    seconds = {"communication_seconds": total, "exposed_seconds": total - hidden}
    seconds["overlapped_seconds"] = hidden
    return {"estimate": estimate, "iterations": iterations, **seconds}
