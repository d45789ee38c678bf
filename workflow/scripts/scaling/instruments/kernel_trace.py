"""Trace iterations with PyTorch's profiler: the kernels of each device over time."""

import json
import os
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from scaling.core.records.run import KernelClass
from scaling.instruments.kernel_classes import Event, Launches, launches
from scaling.launch.ranks import Rank
from scaling.training.trainer import EpochResult, Trainer, TrainIterations

COMMUNICATION_KERNELS = ("nccl", "memcpy ptop")
CPU_COLLECTIVES = ("gloo:all_reduce",)
UNKNOWN: Any = repeat(("other", 0.0))
MICROSECOND = 1e-6
KEPT = ("ph", "name", "cat", "ts", "dur", "tid")
"""What is kept of an event: no stack, shape or counter, so that a step stays small."""

Span = tuple[float, float, float]
"""Start and end in µs, and the bytes that are moved; 0 if they are not known."""


@dataclass(frozen=True)
class Trace:
    """Intervals of work by device and class, after the first barrier.

    On a GPU these are kernels, copies and fills; on a CPU the operations that call no others.
    Without knowing what launched them the classes are `communication` and `other`.
    """

    spans: dict[int, dict[str, list[Span]]]

    def communicating(self) -> tuple[float, float] | None:
        """Return the seconds of communication and of its overlap with compute; None without any.

        For a process with several devices it is the device that communicates longest.
        """
        found = [
            (length(sent), overlap(sent, self._computing(device)))
            for device, spans in self.spans.items()
            if len(sent := _seconds(spans.get("communication")))
        ]
        return max(found, default=None)

    def by_device(self) -> list[dict[str, Any]]:
        """Return a row for each active `gpu`, by its number in this process.

        `busy_seconds` in which anything runs, `compute_seconds` in which anything but communication
        runs (overlaps count once), the number of `kernels`, copies and fills, and their `classes`,
        which add up to `busy_seconds`: what hides behind a class before it is not counted.
        """
        found: list[dict[str, Any]] = []
        for device, spans in sorted(self.spans.items()):
            classes, counted = {}, list[Span]()
            for kind in [one for one in get_args(KernelClass) if one in (*spans, "communication")]:
                own, before = spans.get(kind, []), length(_seconds(counted))
                counted += own
                alone = length(_seconds(counted)) - before
                classes[kind] = {"seconds": alone, "bytes": sum(size for *_, size in own)}
            busy, computing = length(_seconds(counted)), length(self._computing(device))
            times = {"busy_seconds": busy, "compute_seconds": computing, "kernels": len(counted)}
            found.append({"gpu": device, **times, "classes": classes})
        return found

    def _computing(self, device: int) -> np.ndarray:
        own = self.spans[device].items()
        return _seconds([span for kind, of in own if kind != "communication" for span in of])


def record(
    train: TrainIterations, limit: int, rank: Rank, launched: Launches
) -> tuple[Trace, EpochResult]:
    """Return a trace of this rank while it trains at most `limit` iterations.

    The n-th kernel of a name is taken to be `launched` as the n-th of that name was.
    """
    on_gpu = rank.device.type == "cuda"
    activities = [ProfilerActivity.CUDA] if on_gpu else [ProfilerActivity.CPU]
    with profile(activities=activities, acc_events=True) as profiled:
        result = train(limit)
    spans: dict[int, dict[str, list[Span]]] = defaultdict(lambda: defaultdict(list))
    words = COMMUNICATION_KERNELS if on_gpu else CPU_COLLECTIVES
    for event in sorted(profiled.events() or [], key=lambda event: event.time_range.start):
        name, device = event.name.lower(), event.device_index
        communicates = any(word in name for word in words)
        computes = name.startswith("aten::") and not event.cpu_children
        if event.device_type == DeviceType.CUDA if on_gpu else communicates or computes:
            launcher = next(launched.get((device, event.name), UNKNOWN))
            kind, size = ("communication", 0.0) if communicates else launcher
            spans[device][kind].append((event.time_range.start, event.time_range.end, size))
    if rank.processes > 1 and on_gpu:
        # The barrier before the first iteration, which waits for all ranks' tracers.
        for own in spans.values():
            del own["communication"][:1]
    return Trace(spans), result


def launched(trainer: Trainer, train: TrainIterations, limit: int, rank: Rank) -> Launches:
    """Return what launches the kernels of at most `limit` iterations; nothing without memory.

    A captured step does not tell: here the host launches it.
    """
    trainer.replay(False)
    try:
        return launches(_exported(train, limit, rank, shapes=True))
    except torch.OutOfMemoryError:
        print("no memory is left to see what launches the kernels of a step", flush=True)
        return {}
    finally:
        trainer.replay(True)


def one_step(train: TrainIterations, rank: Rank) -> list[Event]:
    """Return the events of one iteration of this rank, in the format of Chrome's traces.

    These are its operators, launches, kernels and copies, with the barrier before it; none where
    the tracer cannot write them.
    """
    events = _exported(train, 1, rank)
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


def _exported(train: TrainIterations, count: int, rank: Rank, shapes: bool = False) -> list[Event]:
    on_gpu = rank.device.type == "cuda"
    activities = [ProfilerActivity.CPU, *[ProfilerActivity.CUDA] * on_gpu]
    with profile(activities=activities, record_shapes=shapes) as profiled:
        train(count)
    with tempfile.TemporaryDirectory() as folder:
        exported = Path(folder, "trace.json")
        profiled.export_chrome_trace(str(exported))
        if not exported.exists():
            print(f"the trace of a step is left out: {folder} has no room for it", flush=True)
            return []
        events: list[Event] = json.loads(exported.read_bytes())["traceEvents"]
        return events


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
    return np.array(spans or [], dtype=np.float64).reshape(-1, 3)[:, :2] * MICROSECOND
