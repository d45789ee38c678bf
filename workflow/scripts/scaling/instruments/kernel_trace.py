"""What ran when, on each device, while some iterations were traced."""

from dataclasses import dataclass

import numpy as np
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from scaling.instruments import intervals
from scaling.launch.ranks import Rank
from scaling.training.trainer import EpochResult, TrainIterations

COMMUNICATION_KERNELS = ("nccl", "memcpy ptop")
CPU_COLLECTIVES = ("gloo:all_reduce",)
MICROSECOND = 1e-6

Span = tuple[float, float]
"""Start and end in µs."""


@dataclass(frozen=True)
class Busy:
    """Seconds in which anything runs on a device, those in which something but communication does.

    Overlaps count once. A communication kernel runs while it waits for other ranks. `spans` is how
    many kernels, copies and fills there are.
    """

    seconds: float
    compute_seconds: float
    spans: int


@dataclass(frozen=True)
class Trace:
    """The spans of communication and of computation by device, the barrier before them left out.

    On a GPU these are kernels, copies and fills; on a CPU the operations that call no other.
    """

    communication: dict[int, list[Span]]
    compute: dict[int, list[Span]]

    def communicating(self) -> tuple[float, float] | None:
        """Seconds of communication and of the part under computation; None without communication.

        Of several devices of one process, those of the one which communicates longest.
        """
        found = [
            (intervals.length(sent), intervals.overlap(sent, _seconds(self.compute.get(device))))
            for device, spans in self.communication.items()
            if len(sent := _seconds(spans))
        ]
        return max(found, default=None)

    def busiest(self) -> Busy:
        """How the device is used on which anything runs for the longest time."""
        found = []
        for device in self.communication.keys() | self.compute.keys():
            own = self.compute.get(device, [])
            spans = [*self.communication.get(device, []), *own]
            found.append(
                Busy(intervals.length(_seconds(spans)), intervals.length(_seconds(own)), len(spans))
            )
        return max(found, key=lambda busy: busy.seconds, default=Busy(0.0, 0.0, 0))


def record(train: TrainIterations, limit: int, rank: Rank) -> tuple[Trace, EpochResult]:
    """Trace this rank while it trains at most `limit` iterations."""
    on_gpu = rank.device.type == "cuda"
    activities = [ProfilerActivity.CUDA] if on_gpu else [ProfilerActivity.CPU]
    with profile(activities=activities, acc_events=True) as profiled:
        result = train(limit)
    communication: dict[int, list[Span]] = {}
    compute: dict[int, list[Span]] = {}
    for event in profiled.events() or []:
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
    return Trace(communication, compute), result


def _seconds(spans: list[Span] | None) -> np.ndarray:
    return np.array(spans or [], dtype=np.float64).reshape(-1, 2) * MICROSECOND
