"""Measure where the time of a run's steps goes, in extra iterations on in-memory batches.

No rank waits for data. Steps are timed, with and without gradient exchange, and traced with
PyTorch's profiler: each device's kernels over time, and their classes by what launches them. A
communication kernel runs until all ranks have joined it, so that includes waiting for the slowest.
"""

import json
import math
import os
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from statistics import median
from typing import Any, get_args

import numpy as np
import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from scaling.core.records.run import KernelClass
from scaling.launch.ranks import Rank
from scaling.training.trainer import EpochResult, Trainer, TrainIterations

SETTLING_ITERATIONS = 2
REPEATS = 3
COMMUNICATION_KERNELS = ("nccl", "memcpy ptop")
CPU_COLLECTIVES = ("gloo:all_reduce",)
UNKNOWN: Any = repeat(("other", 0.0))
MICROSECOND = 1e-6
KEPT = ("ph", "name", "cat", "ts", "dur", "tid")
"""What is kept of an event: no stack, shape or counter, so that a step stays small."""

Span = tuple[float, float, float]
"""Start and end in µs, and the bytes that are moved; 0 if they are not known."""
Event = dict[str, Any]
"""An event of a trace in Chrome's format."""
Launches = dict[tuple[int, str], Iterator[tuple[KernelClass, float]]]
"""Class and bytes (0: not known) of the kernels of each device and name, as they began; the last
repeats."""
OPTIMIZER = "optimizer"
"""How the name of a range begins in which weights are updated."""
CLASSES: dict[KernelClass, re.Pattern[str]] = {
    "communication": re.compile(r"nccl:|c10d::|_c10d_functional|record_param_comms"),
    "products": re.compile(r"aten::\w*(conv(olution|\d)|mm\b|mm_|dot|attention)|triton_tem_"),
    "copies": re.compile(r"aten::(\w*copy|clone|cat\b|_local_scalar)|fsdp::"),
    "element-wise": re.compile(r"aten::|triton_"),
}
"""How an operator's name begins, the first that fits."""
LOOKUPS = re.compile(r"index|embedding|scatter")
"""Operators that read only a part of their arrays."""
NO_OUTPUT = re.compile(r"triton_|.*copy_$|aten::(zero_|fill_|sum|mean|arg|nll|max_pool)")
"""Operators whose outputs are among their recorded arrays, or small."""
ITEM_BYTES = {"float": 4, "int": 4, "c10::BFloat16": 2, "c10::Half": 2, "bool": 1}
ITEM_BYTES |= {"double": 8, "long": 8, "long int": 8, "unsigned char": 1, "TensorList": 4}
"""Bytes of an item; lists are an optimizer's, of float32."""


@dataclass(frozen=True)
class Trace:
    """Intervals of work by device and class: kernels, copies and fills; on a CPU operations.

    Without knowing what launched them the classes are `communication` and `other`.
    """

    spans: dict[int, dict[str, list[Span]]]

    def communicating(self) -> tuple[float, float] | None:
        """Return the seconds of communication and of its overlap with compute; None without any.

        They are of the device that communicates longest.
        """
        sent = {device: _seconds(own.get("communication")) for device, own in self.spans.items()}
        found = [(length(own), overlap(own, self._computing(n))) for n, own in sent.items()]
        return max(filter(any, found), default=None)

    def by_device(self) -> list[dict[str, Any]]:
        """Return a row for each active `gpu`, by its number in this process.

        In `busy_seconds` anything runs, in `compute_seconds` anything but communication. A class
        runs in its `running_seconds`; in its `seconds` none before it does: their sum is busy.
        """
        found: list[dict[str, Any]] = []
        for device, spans in sorted(self.spans.items()):
            classes, counted = {}, list[Span]()
            for kind in [one for one in get_args(KernelClass) if one in (*spans, "communication")]:
                own, before = spans.get(kind, []), length(_seconds(counted))
                counted += own
                classes[kind] = {
                    "seconds": length(_seconds(counted)) - before,
                    "running_seconds": length(_seconds(own)),
                    "bytes": sum(size for *_, size in own),
                }
            busy, computing = length(_seconds(counted)), length(self._computing(device))
            times = {"busy_seconds": busy, "compute_seconds": computing, "kernels": len(counted)}
            found.append({"gpu": device, **times, "classes": classes})
        return found

    def _computing(self, device: int) -> np.ndarray:
        own = self.spans[device].items()
        return _seconds([span for kind, of in own if kind != "communication" for span in of])


def measure_all(trainer: Trainer, rank: Rank, gpus: int, limit: int) -> dict[str, Any]:
    """Return what the steps of this rank of a run on `gpus` GPUs take.

    `in_memory`: `seconds` of each repeat, and `seconds_without_exchange`, null where gradients are
    always or never exchanged. `readings` of communication by the trace, empty on one GPU.
    `device_time` of each device: `Trace.by_device` and the untraced host `seconds` of the same
    iterations. `step`: the events of one step.
    """
    own = {"rank": rank.index}
    on_gpu = rank.device.type == "cuda"
    train = trainer.in_memory(limit)
    in_memory = _in_memory(trainer, train, limit)
    idle = {**own, "iterations": 0, "note": "a CPU runs no kernels"}
    found: dict[str, Any] = {"in_memory": own | in_memory, "readings": [], "device_time": [idle]}
    if gpus > 1 or on_gpu:
        train(SETTLING_ITERATIONS)
        known = launched(trainer, train, limit, rank) if on_gpu else {}
        trace, traced = record(train, limit, rank, known)
    if on_gpu:
        # Tracing delays launches but not kernels: the gaps are those of the untraced host seconds.
        seconds = {"iterations": traced.iterations, "seconds": median(in_memory["seconds"])}
        found["device_time"] = [{**own, **seconds, **each} for each in trace.by_device()]
    if gpus > 1:
        found["readings"] = [own | {"estimate": "profiler"} | _reading(trace, traced.iterations)]
    return {**found, "step": one_step(train, rank)}


def _in_memory(trainer: Trainer, train: TrainIterations, limit: int) -> dict[str, Any]:
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


def _reading(trace: Trace, iterations: int) -> dict[str, Any]:
    """Return the seconds of all communication and of its overlapped part, or a note."""
    if (spans := trace.communicating()) is None:
        return {"iterations": 0, "note": "the trace shows no communication"}
    total, hidden = spans
    seconds = {"communication_seconds": total, "exposed_seconds": total - hidden}
    return {"iterations": iterations, **seconds, "overlapped_seconds": hidden}


def record(
    train: TrainIterations, limit: int, rank: Rank, known: Launches
) -> tuple[Trace, EpochResult]:
    """Return a trace of at most `limit` iterations, the n-th kernel of a name launched as `known`.

    It begins after the first barrier, which waits for all ranks' tracers.
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
            launcher = next(known.get((device, event.name), UNKNOWN))
            kind, size = ("communication", 0.0) if communicates else launcher
            spans[device][kind].append((event.time_range.start, event.time_range.end, size))
    if rank.processes > 1 and on_gpu:
        for own in spans.values():
            del own["communication"][:1]
    return Trace(spans), result


def launched(trainer: Trainer, train: TrainIterations, limit: int, rank: Rank) -> Launches:
    """Return what launches the kernels of iterations, by the host; nothing without memory."""
    trainer.replay(False)
    try:
        return launches(_exported(train, limit, rank, shapes=True))
    except torch.OutOfMemoryError:
        print("no memory is left to see what launches the kernels of a step", flush=True)
        return {}
    finally:
        trainer.replay(True)


def one_step(train: TrainIterations, rank: Rank) -> list[Event]:
    """Return the events of one iteration of this rank; none where the tracer cannot write them."""
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
    named = {"ph": "M", "name": "process_name"}
    return found + [named | {"args": {"name": one}, "pid": pid} for one, pid in places.items()]


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
        return list(json.loads(exported.read_bytes())["traceEvents"])


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
    times = np.sort(np.concatenate([union(one), union(other)]), axis=0)
    # Sorted separately: where start k+1 is before end k, both cover the time between.
    return float(np.clip(times[:-1, 1] - times[1:, 0], 0, None).sum())


def _seconds(spans: list[Span] | None) -> np.ndarray:
    return np.array(spans or [], dtype=np.float64).reshape(-1, 3)[:, :2] * MICROSECOND


def launches(events: list[Event]) -> Launches:
    """Return what launched the kernels of a trace with shapes; bytes are shared among kernels."""
    operators = {one["args"]["External id"]: one for one in events if one.get("cat") == "cpu_op"}
    ranges = [one for one in events if one.get("cat") == "user_annotation"]
    updates = [one for one in ranges if one["name"].lower().startswith(OPTIMIZER)]
    kernels = [one for one in events if one.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    count = Counter(kernel["args"].get("External id") for kernel in kernels)
    found: dict[tuple[int, str], list[tuple[KernelClass, float]]] = defaultdict(list)
    for kernel in sorted(kernels, key=lambda kernel: kernel["ts"]):
        number = kernel["args"].get("External id")
        operator = operators.get(number, {"name": "", "ts": 0})
        kind = kernel_class(operator["name"])
        if any(0 <= operator["ts"] - update["ts"] <= update["dur"] for update in updates):
            kind = kind if kind == "communication" else "optimizer"
        place = kernel["pid"], kernel["name"]  # Copies between GPUs tell no device.
        found[place].append((kind, moved_bytes(operator) / count[number]))
    return {place: chain(own, repeat(own[-1])) for place, own in found.items()}


def kernel_class(operator: str) -> KernelClass:
    """Return the class of a kernel that this operator launches outside of updates."""
    return next((kind for kind, names in CLASSES.items() if names.match(operator)), "other")


def moved_bytes(operator: Event) -> float:
    """Return the bytes that an operator reads and writes, by its shapes; 0 if they are not known.

    It reads each input once and writes an output as large as the largest, but for `NO_OUTPUT`.
    """
    name, recorded = operator["name"], operator.get("args", {})
    if LOOKUPS.search(name) or kernel_class(name) not in ("copies", "element-wise"):
        return 0.0
    shapes = zip(recorded.get("Input Dims", []), recorded.get("Input type", []), strict=True)
    sizes = [ITEM_BYTES.get(kind, 0) * _items(shape) for shape, kind in shapes]
    return float(sum(sizes) + (0 if NO_OUTPUT.match(name) else max(sizes, default=0)))


def _items(shape: list[Any]) -> int:
    """Return the number of items of a shape, or of a list of shapes."""
    return sum(map(math.prod, shape)) if shape and isinstance(shape[0], list) else math.prod(shape)
