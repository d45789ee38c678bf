"""How long a run communicates, measured in extra iterations after everything else.

Three instruments, each over at most `limit` iterations on batches that are in memory already, so
that no rank waits for another one's data: iterations without gradient synchronisation beside the
same ones with it, a trace of the kernels, and the log that DistributedDataParallel keeps. A reading
is a dict: `estimate`, `rank`, `iterations` it covers, and either `seconds` and `seconds_without` of
them, one for each repeat, or their `communication_seconds`, `exposed_seconds` and
`overlapped_seconds`; `note` says why a reading is missing. A communication kernel runs until all
ranks have joined it: waiting for the slowest rank is part of its time.
"""

from contextlib import nullcontext
from typing import Any

import numpy as np
from torch.autograd import DeviceType
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile

from scaling import intervals
from scaling.ranks import Rank
from scaling.recipes.trainer import Trainer, TrainIterations

Reading = dict[str, Any]

COMMUNICATION_KERNELS = ("nccl", "memcpy ptop")
CPU_COLLECTIVES = ("gloo:all_reduce",)
SETTLING_ITERATIONS = 2
REPEATS = 3
MICROSECOND = 1e-6
NANOSECOND = 1e-9


def read_all(trainer: Trainer, rank: Rank, limit: int) -> list[Reading]:
    """The readings of every instrument on this rank."""
    train = trainer.in_memory(limit)
    readings = [
        _without_communication(trainer, train, limit),
        _profiler(train, rank, limit),
        _ddp_log(trainer, train, limit),
    ]
    return [{"rank": rank.index, **reading} for reading in readings]


def _without_communication(trainer: Trainer, train: TrainIterations, limit: int) -> Reading:
    """Seconds of the same iterations with and without synchronisation, in turn."""
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


def _profiler(train: TrainIterations, rank: Rank, limit: int) -> Reading:
    """Time of communication kernels, and the part of it in which a compute kernel runs as well.

    Of several devices of one process, that of the one which communicates longest.
    """
    on_gpu = rank.device.type == "cuda"
    activities = [ProfilerActivity.CUDA] if on_gpu else [ProfilerActivity.CPU]
    train(SETTLING_ITERATIONS)
    with profile(activities=activities, acc_events=True) as trace:
        result = train(limit)
    communication: dict[int, list[tuple[float, float]]] = {}
    compute: dict[int, list[tuple[float, float]]] = {}
    for event in trace.events() or []:
        span = (event.time_range.start, event.time_range.end)
        name = event.name.lower()
        if on_gpu:
            if event.device_type != DeviceType.CUDA:
                continue
            is_communication = any(word in name for word in COMMUNICATION_KERNELS)
        else:
            is_communication = any(word in name for word in CPU_COLLECTIVES)
            if not is_communication and (not name.startswith("aten::") or event.cpu_children):
                continue
        (communication if is_communication else compute).setdefault(event.device_index, []).append(
            span
        )
    if rank.processes > 1 and on_gpu:
        # The barrier before the first iteration: it lasts until the last rank has its tracer.
        for spans in communication.values():
            spans.remove(min(spans))
    if not any(communication.values()):
        return _missing("profiler", "the trace shows no communication")
    total, hidden = max(
        _total_and_hidden(spans, compute.get(device, [])) for device, spans in communication.items()
    )
    return {
        "estimate": "profiler",
        "iterations": result.iterations,
        "communication_seconds": total,
        "exposed_seconds": total - hidden,
        "overlapped_seconds": hidden,
    }


def _total_and_hidden(
    communication: list[tuple[float, float]], compute: list[tuple[float, float]]
) -> tuple[float, float]:
    """Seconds of the spans of communication, in µs, and of the part under those of compute."""
    sent, busy = (
        np.array(spans, dtype=np.float64).reshape(-1, 2) * MICROSECOND
        for spans in (communication, compute)
    )
    return intervals.length(sent), intervals.overlap(sent, busy)


def _ddp_log(trainer: Trainer, train: TrainIterations, limit: int) -> Reading:
    """What the reducer says of its all-reduces, iteration by iteration.

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
    return {
        "estimate": "ddp_log",
        "iterations": iterations,
        "communication_seconds": total,
        "exposed_seconds": total - hidden,
        "overlapped_seconds": hidden,
    }


def _missing(estimate: str, note: str) -> Reading:
    return {"estimate": estimate, "iterations": 0, "note": note}
