"""Measure how long a run communicates and how long its device works, in extra iterations.

Communication is measured in three ways, each over at most `limit` iterations on batches that are in
memory already, so that no rank waits for another one's data: iterations with and without gradient
synchronisation, a trace of the kernels, and the log that DistributedDataParallel keeps. A
measurement is a dict: `estimate`, `rank`, `iterations` it covers, and either `seconds` and
`seconds_without` of them, one for each repeat, or their `communication_seconds`, `exposed_seconds`
and `overlapped_seconds`; `note` says why it is missing. A communication kernel runs until all ranks
have joined it: waiting for the slowest rank is part of its time. The same trace, on one GPU as
well, tells how long the device works.
"""

from contextlib import nullcontext
from typing import Any

from torch.nn.parallel import DistributedDataParallel

from scaling.instruments import kernel_trace
from scaling.instruments.kernel_trace import Trace
from scaling.launch.ranks import Rank
from scaling.training.trainer import Trainer, TrainIterations

Measurement = dict[str, Any]

SETTLING_ITERATIONS = 2
REPEATS = 3
NANOSECOND = 1e-9


def measure_all(
    trainer: Trainer, rank: Rank, gpus: int, limit: int
) -> tuple[list[Measurement], dict[str, Any]]:
    """Measure the communication of this rank of a run on `gpus` GPUs, and its device's time.

    On one GPU nothing is communicated and there is no measurement. The device's time is what
    `Trace.busiest` says beside the host's `seconds` of the same iterations, untraced: on several
    GPUs a device that waits for another rank does so inside a communication kernel, which is no gap
    and no compute either. A CPU, which runs no kernels, has 0 iterations of it and a `note`.
    """
    on_gpu = rank.device.type == "cuda"
    device_time = {"rank": rank.index, "iterations": 0, "note": "a CPU runs no kernels"}
    if gpus == 1 and not on_gpu:
        return [], device_time
    train = trainer.in_memory(limit)
    found = [_without_communication(trainer, train, limit)] if gpus > 1 else []
    train(SETTLING_ITERATIONS)
    untraced = train(limit) if on_gpu else None
    trace, traced = kernel_trace.record(train, limit, rank)
    if untraced:
        # Tracing delays launches, not what runs, so the gaps between kernels are these seconds of
        # the host less the busy ones, not those of the trace.
        seconds = {"iterations": untraced.iterations, "seconds": untraced.seconds}
        device_time = {"rank": rank.index, **seconds, **trace.busiest()}
    if gpus > 1:
        found += [_profiler(trace, traced.iterations), _ddp_log(trainer, train, limit)]
    return [{"rank": rank.index, **one} for one in found], device_time


def _without_communication(trainer: Trainer, train: TrainIterations, limit: int) -> Measurement:
    """Time the same iterations with and without synchronisation, in turn."""
    if trainer.without_communication() is None:
        return _missing("without_communication", "the strategy cannot leave communication out")
    with_it, without = [], []
    for _ in range(REPEATS):
        train(SETTLING_ITERATIONS)
        with_it.append(train(limit))
        with trainer.without_communication() or nullcontext():
            train(SETTLING_ITERATIONS)
            without.append(train(limit))
    return {
        "estimate": "without_communication",
        "iterations": with_it[0].iterations,
        "seconds": [result.seconds for result in with_it],
        "seconds_without": [result.seconds for result in without],
    }


def _profiler(trace: Trace, iterations: int) -> Measurement:
    """Add up the time of communication kernels, and its part under a compute kernel."""
    found = trace.communicating()
    if found is None:
        return _missing("profiler", "the trace shows no communication")
    return _measured("profiler", iterations, *found)


def _ddp_log(trainer: Trainer, train: TrainIterations, limit: int) -> Measurement:
    """Add up what DDP's reducer logs of its all-reduces, iteration by iteration.

    Its own averages reach back to the first epochs, where ranks waited for one another's data.
    """
    model = trainer.model
    if not isinstance(model, DistributedDataParallel):
        return _missing("ddp_log", "the cell does not use DistributedDataParallel")
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
    if total <= 0:
        return _missing("ddp_log", "DistributedDataParallel logged no communication time")
    return _measured("ddp_log", iterations, total, hidden)


def _measured(estimate: str, iterations: int, total: float, hidden: float) -> Measurement:
    return {
        "estimate": estimate,
        "iterations": iterations,
        "communication_seconds": total,
        "exposed_seconds": total - hidden,
        "overlapped_seconds": hidden,
    }


def _missing(estimate: str, note: str) -> Measurement:
    return {"estimate": estimate, "iterations": 0, "note": note}
