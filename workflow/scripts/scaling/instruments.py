"""How long a run communicates, measured in extra epochs after everything else.

Three instruments, each over at most `limit` iterations: an epoch without gradient synchronisation
beside one with it, a trace of the kernels, and the log that DistributedDataParallel keeps. A
reading is a dict: `estimate`, `rank`, `iterations` it covers, `seconds` of them where it times an
epoch, and `communication_seconds`, `exposed_seconds`, `overlapped_seconds` of those iterations
(null where the instrument cannot tell); `note` says why a reading is missing.
"""

from typing import Any

import numpy as np
from torch.autograd import DeviceType
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile

from scaling import intervals
from scaling.ranks import Rank
from scaling.recipes.trainer import Trainer

Reading = dict[str, Any]

COMMUNICATION_KERNELS = ("nccl", "memcpy ptop")
CPU_COLLECTIVES = ("gloo:",)
SETTLING_ITERATIONS = 2
MICROSECOND = 1e-6
NANOSECOND = 1e-9


def read_all(trainer: Trainer, rank: Rank, epoch: int, limit: int) -> list[Reading]:
    """The readings of every instrument on this rank, in epochs numbered from `epoch`."""
    readings = [
        *_without_communication(trainer, rank, epoch, limit),
        _profiler(trainer, rank, epoch, limit),
        _ddp_log(trainer, rank, epoch, limit),
    ]
    return [{"rank": rank.index, **reading} for reading in readings]


def _without_communication(trainer: Trainer, rank: Rank, epoch: int, limit: int) -> list[Reading]:
    """Seconds without loading of the same iterations with and without synchronisation."""
    local = trainer.without_communication()
    if local is None:
        return [_missing("without_communication", "the strategy cannot leave communication out")]
    trainer.run_epoch(epoch, SETTLING_ITERATIONS)
    with_it = trainer.run_epoch(epoch, limit)
    with local:
        trainer.run_epoch(epoch, SETTLING_ITERATIONS)
        without = trainer.run_epoch(epoch, limit)
    return [
        {
            "estimate": "without_communication",
            "iterations": with_it.iterations,
            "seconds": with_it.seconds - with_it.loader_seconds,
            "seconds_without": without.seconds - without.loader_seconds,
        }
    ]


def _profiler(trainer: Trainer, rank: Rank, epoch: int, limit: int) -> Reading:
    """Time of communication kernels, and the part of it in which a compute kernel runs as well."""
    on_gpu = rank.device.type == "cuda"
    activities = [ProfilerActivity.CUDA] if on_gpu else [ProfilerActivity.CPU]
    trainer.run_epoch(epoch, SETTLING_ITERATIONS)
    with profile(activities=activities, acc_events=True) as trace:
        result = trainer.run_epoch(epoch, limit)
    communication: list[tuple[float, float]] = []
    compute: list[tuple[float, float]] = []
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
        (communication if is_communication else compute).append(span)
    if not communication:
        return _missing("profiler", "the trace shows no communication")
    sent = np.array(communication, dtype=np.float64) * MICROSECOND
    busy = np.array(compute, dtype=np.float64).reshape(-1, 2) * MICROSECOND
    total, hidden = intervals.length(sent), intervals.overlap(sent, busy)
    return {
        "estimate": "profiler",
        "iterations": result.iterations,
        "communication_seconds": total,
        "exposed_seconds": total - hidden,
        "overlapped_seconds": hidden,
    }


def _ddp_log(trainer: Trainer, rank: Rank, epoch: int, limit: int) -> Reading:
    """What the reducer says of its own all-reduces, averaged over the iterations it sampled."""
    model = trainer.model
    if not isinstance(model, DistributedDataParallel):
        return _missing("ddp_log", "the cell does not use DistributedDataParallel")
    model._set_ddp_runtime_logging_sample_rate(1)
    result = trainer.run_epoch(epoch, limit)
    logged = model._get_ddp_logging_data()
    total = float(logged.get("avg_backward_comm_time", 0)) * NANOSECOND * result.iterations
    hidden = (
        float(logged.get("avg_backward_compute_comm_overlap_time", 0))
        * NANOSECOND
        * result.iterations
    )
    if total <= 0:
        return _missing("ddp_log", "DistributedDataParallel logged no communication time")
    return {
        "estimate": "ddp_log",
        "iterations": result.iterations,
        "communication_seconds": total,
        "exposed_seconds": total - hidden,
        "overlapped_seconds": hidden,
    }


def _missing(estimate: str, note: str) -> Reading:
    return {"estimate": estimate, "iterations": 0, "note": note}
