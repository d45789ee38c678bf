"""Trace iterations with PyTorch's profiler: the kernels of each device over time."""

import json
import os
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from scaling.instruments.kernel_classes import UNKNOWN, Event, Launches, launches
from scaling.launch.ranks import Rank
from scaling.training.trainer import EpochResult, Trainer, TrainIterations

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
    `kernels` are both, with their names.
    """

    communication: dict[int, list[Span]]
    compute: dict[int, list[Span]]
    kernels: dict[int, list[tuple[Span, str]]] = field(default_factory=dict)

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

    def by_device(self, launched: Launches | None = None) -> list[dict[str, Any]]:
        """Return a row for each active `gpu`, by its number in this process.

        `busy_seconds` in which anything runs, `compute_seconds` in which anything but communication
        runs (overlaps count once), and the number of `kernels`, copies and fills; where it is known
        what launched them, also by their `classes`.
        """
        found: list[dict[str, Any]] = []
        for device in sorted(self.communication.keys() | self.compute.keys()):
            own = self.compute.get(device, [])
            spans = [*self.communication.get(device, []), *own]
            times = {"busy_seconds": length(_seconds(spans))}
            times["compute_seconds"] = length(_seconds(own))
            found.append({"gpu": device, **times, "kernels": len(spans)})
            if launched:
                found[-1]["classes"] = self._classes(device, launched)
        return found

    def _classes(self, device: int, launched: Launches) -> dict[str, dict[str, float]]:
        """Return `core.records.run.OfClass` of each class on a device.

        The n-th kernel of a name was launched as the n-th of that name in the other trace.
        """
        spans, sized = defaultdict[str, list[Span]](list), defaultdict[str, list[Span]](list)
        seen, moved = Counter[str](), Counter[str]()
        for span, name in sorted(self.kernels[device]):
            of_name = launched.get((device, name), [UNKNOWN])
            kind, size = of_name[min(seen[name], len(of_name) - 1)]
            kind = "communication" if _communicates(name, COMMUNICATION_KERNELS) else kind
            seen[name] += 1
            spans[kind].append(span)
            if size is not None:
                sized[kind].append(span)
                moved[kind] += round(size)
        found = {}
        for kind, own in spans.items():
            others = [span for other in spans if other != kind for span in spans[other]]
            alone = length(_seconds([*own, *others])) - length(_seconds(others))
            found[kind] = {
                "seconds": length(_seconds(own)),
                "exposed_seconds": max(0.0, alone),
                "kernels": len(own),
                "bytes": moved[kind],
                "sized_seconds": length(_seconds(sized[kind])),
            }
        return found


def record(train: TrainIterations, limit: int, rank: Rank) -> tuple[Trace, EpochResult]:
    """Return a trace of this rank while it trains at most `limit` iterations."""
    on_gpu = rank.device.type == "cuda"
    activities = [ProfilerActivity.CUDA] if on_gpu else [ProfilerActivity.CPU]
    with profile(activities=activities, acc_events=True) as profiled:
        result = train(limit)
    communication: dict[int, list[Span]] = defaultdict(list)
    compute: dict[int, list[Span]] = defaultdict(list)
    kernels: dict[int, list[tuple[Span, str]]] = defaultdict(list)
    words = COMMUNICATION_KERNELS if on_gpu else CPU_COLLECTIVES
    for event in profiled.events() or []:
        communicates = _communicates(event.name, words)
        computes = event.name.startswith("aten::") and not event.cpu_children
        if event.device_type == DeviceType.CUDA if on_gpu else communicates or computes:
            span = (event.time_range.start, event.time_range.end)
            (communication if communicates else compute)[event.device_index].append(span)
            kernels[event.device_index].append((span, event.name))
    if rank.processes > 1 and on_gpu:
        # The barrier before the first iteration, which waits for all ranks' tracers.
        for own in communication.values():
            own.remove(min(own))
    return Trace(communication, compute, kernels), result


def launched(trainer: Trainer, train: TrainIterations, limit: int, rank: Rank) -> Launches:
    """Return what launches the kernels of at most `limit` iterations; nothing without memory.

    A captured step does not tell: here the host launches it.
    """
    try:
        with trainer.launched():
            return launches(_exported(train, limit, rank, shapes=True))
    except torch.OutOfMemoryError:
        print("no memory is left to see what launches the kernels of a step", flush=True)
        return {}


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
    """Train; return all events, with the shapes of operators, or none if they cannot be written."""
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


def _communicates(name: str, words: tuple[str, ...]) -> bool:
    return any(word in name.lower() for word in words)


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
