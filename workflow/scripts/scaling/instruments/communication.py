"""Measure where the time of a run's steps goes, in extra iterations on in-memory batches.

So no rank waits for data. There are at most `limit` iterations of each kind: timed steps, with and
without gradient exchange, and a profiler trace; then one step is traced to be looked at. The trace
yields a measurement, a dict: `estimate`, `rank`, its number of `iterations`, and their
`communication_seconds`, `exposed_seconds` and `overlapped_seconds`, or a `note` why these are
missing. A communication kernel runs until all ranks
have joined it, so its time includes waiting for the slowest rank.
"""

from contextlib import nullcontext
from statistics import median
from typing import Any

from scaling.instruments import kernel_trace
from scaling.launch.ranks import Rank
from scaling.training.trainer import Trainer, TrainIterations

Measurement = dict[str, Any]

SETTLING_ITERATIONS = 2
REPEATS = 3


def measure_all(trainer: Trainer, rank: Rank, gpus: int, limit: int) -> dict[str, Any]:
    """Return what the steps of this rank of a run on `gpus` GPUs take.

    `in_memory`: `seconds` of each repeat, and `seconds_without_exchange`, null on one GPU and for
    strategies that always exchange gradients. `readings`: the measurements of communication, empty
    on one GPU. `device_time`: for each device of this rank, `Trace.by_device` and the untraced host
    `seconds` of the same iterations; a device that waits for another rank is inside a communication
    kernel, neither idle nor computing. `step`: the events of one step.
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
    if gpus > 1 or on_gpu:
        train(SETTLING_ITERATIONS)
        launched = kernel_trace.launched(trainer, train, limit, rank) if on_gpu else {}
        trace, traced = kernel_trace.record(train, limit, rank, launched)
    if on_gpu:
        # Tracing delays launches but not kernels, so the gaps are the untraced host seconds minus
        # the busy seconds, and not the gaps of the trace.
        seconds = {"iterations": traced.iterations, "seconds": median(in_memory["seconds"])}
        found["device_time"] = [{**own, **seconds, **each} for each in trace.by_device()]
    if gpus > 1:
        spans, note = trace.communicating(), "the trace shows no communication"
        by_trace = _reading("profiler", traced.iterations, spans, note)
        found["readings"] = [own | by_trace]
    return {**found, "step": kernel_trace.one_step(train, rank)}


def _in_memory(trainer: Trainer, train: TrainIterations, limit: int) -> Measurement:
    """Time the same iterations with and, where possible, without gradient exchange, in turn."""
    leaves_out = trainer.replica.without_communication() is not None
    with_it, without = [], []
    for _ in range(REPEATS):
        train(SETTLING_ITERATIONS)
        with_it.append(train(limit))
        if leaves_out:
            with trainer.replica.without_communication() or nullcontext():
                train(SETTLING_ITERATIONS)
                without.append(train(limit))
    return {
        "iterations": with_it[0].iterations,
        "samples": with_it[0].samples,
        "seconds": [result.seconds for result in with_it],
        "seconds_without_exchange": [result.seconds for result in without] or None,
    }


def _reading(
    estimate: str, iterations: int, spans: tuple[float, float] | None, note: str
) -> Measurement:
    """Return the seconds of all communication and of its overlapped part, or a note."""
    if spans is None:
        return {"estimate": estimate, "iterations": 0, "note": note}
    total, hidden = spans
    seconds = {"communication_seconds": total, "exposed_seconds": total - hidden}
    seconds["overlapped_seconds"] = hidden
    return {"estimate": estimate, "iterations": iterations, **seconds}
