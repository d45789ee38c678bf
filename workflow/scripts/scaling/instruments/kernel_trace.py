"""Trace iterations with PyTorch's profiler: the kernels of each device over time."""

import json
import os
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from scaling.launch.ranks import Rank
from scaling.training.trainer import EpochResult, TrainIterations

COMMUNICATION_KERNELS = ("nccl", "memcpy ptop")
CPU_COLLECTIVES = ("gloo:all_reduce",)
MICROSECOND = 1e-6
KEPT = ("ph", "name", "cat", "ts", "dur", "tid")
"""What is kept of an event: no stack, shape or counter, so that a step stays small."""

Span = tuple[float, float]
"""Start and end in µs."""


@dataclass(frozen=True)
class Trace:
    """Intervals of communication and computation by device, after the first barrier.

    On a GPU these are kernels, copies and fills; on a CPU the operations that call no others.
    """

    communication: dict[int, list[Span]]
    compute: dict[int, list[Span]]

    def communicating(self) -> tuple[float, float] | None:
        """Return the seconds of communication and of its overlap with compute; None without any.

        For a process with several devices it is the device that communicates longest.
        """
        found = [
            (length(sent), overlap(sent, _seconds(self.compute.get(device))))
            for device, spans in self.communication.items()
            if len(sent := _seconds(spans))
        ]
        return max(found, default=None)

    def by_device(self) -> list[dict[str, float]]:
        """Return a row for each active `gpu`, by its number in this process.

        `busy_seconds` in which anything runs, `compute_seconds` in which anything but communication
        runs (overlaps count once), and the number of `kernels`, copies and fills.
        """
        found: list[dict[str, float]] = []
        for device in sorted(self.communication.keys() | self.compute.keys()):
            own = self.compute.get(device, [])
            spans = [*self.communication.get(device, []), *own]
            times = {"busy_seconds": length(_seconds(spans))}
            times["compute_seconds"] = length(_seconds(own))
            found.append({"gpu": device, **times, "kernels": len(spans)})
        return found


def record(train: TrainIterations, limit: int, rank: Rank) -> tuple[Trace, EpochResult]:
    """Return a trace of this rank while it trains at most `limit` iterations."""
    on_gpu = rank.device.type == "cuda"
    activities = [ProfilerActivity.CUDA] if on_gpu else [ProfilerActivity.CPU]
    with profile(activities=activities, acc_events=True) as profiled:
        result = train(limit)
    communication: dict[int, list[Span]] = defaultdict(list)
    compute: dict[int, list[Span]] = defaultdict(list)
    words = COMMUNICATION_KERNELS if on_gpu else CPU_COLLECTIVES
    for event in profiled.events() or []:
        name = event.name.lower()
        communicates = any(word in name for word in words)
        computes = name.startswith("aten::") and not event.cpu_children
        if event.device_type == DeviceType.CUDA if on_gpu else communicates or computes:
            span = (event.time_range.start, event.time_range.end)
            (communication if communicates else compute)[event.device_index].append(span)
    if rank.processes > 1 and on_gpu:
        # The barrier before the first iteration, which waits for all ranks' tracers.
        for own in communication.values():
            own.remove(min(own))
    return Trace(communication, compute), result


def one_step(train: TrainIterations, rank: Rank) -> list[dict[str, Any]]:
    """Return the events of one iteration of this rank, in the format of Chrome's traces.

    These are its operators, launches, kernels and copies, with the barrier before it; none where
    the tracer cannot write them.
    """
    on_gpu = rank.device.type == "cuda"
    activities = [ProfilerActivity.CPU, *[ProfilerActivity.CUDA] * on_gpu]
    with profile(activities=activities) as profiled:
        train(1)
    with tempfile.TemporaryDirectory() as folder:
        exported = Path(folder, "trace.json")
        profiled.export_chrome_trace(str(exported))
        if not exported.exists():
            print(f"the trace of a step is left out: {folder} has no room for it", flush=True)
            return []
        events = json.loads(exported.read_bytes())["traceEvents"]
    host, found = os.getpid(), []
    places: dict[str, int] = {}
    for event in events:
        pid = event["pid"]
        # The host's events have its process id, a GPU's have its number, and others none.
        if event["ph"] == "X" and isinstance(pid, int) and pid >= 0:
            place = f"rank {rank.index}, {'host' if pid == host else f'GPU {pid}'}"
            number = places.setdefault(place, 100 * rank.index + len(places))
            found.append({key: event[key] for key in KEPT} | {"pid": number})
    for place, number in places.items():
        named = {"ph": "M", "name": "process_name", "args": {"name": place}}
        found.append(named | {"pid": number})
    return found


def union(intervals: np.ndarray) -> np.ndarray:
    """Return the union of `intervals` [n, 2] (start, end) as sorted, disjoint ones [m, 2]."""
    if len(intervals) == 0:
        return np.empty((0, 2))
    ordered = intervals[np.argsort(intervals[:, 0], kind="stable")]
    latest = np.maximum.accumulate(ordered[:, 1])
    first = np.concatenate([[True], ordered[1:, 0] > latest[:-1]])
    last = np.concatenate([first[1:], [True]])
    return np.column_stack([ordered[first, 0], latest[last]])


def length(intervals: np.ndarray) -> float:
    """Return the total length of `intervals` [n, 2], overlaps counted once."""
    disjoint = union(intervals)
    return float((disjoint[:, 1] - disjoint[:, 0]).sum())


def overlap(one: np.ndarray, other: np.ndarray) -> float:
    """Return the length of the intersection of `one` [n, 2] and `other` [m, 2]."""
    both = np.concatenate([union(one), union(other)])
    times = np.sort(both, axis=0)
    # Sorted separately: where start k+1 is before end k, both cover the time between.
    return float(np.clip(times[:-1, 1] - times[1:, 0], 0, None).sum())


def _seconds(spans: list[Span] | None) -> np.ndarray:
    return np.array(spans or [], dtype=np.float64).reshape(-1, 2) * MICROSECOND
