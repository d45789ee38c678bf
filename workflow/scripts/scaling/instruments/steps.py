"""Measure where the time of training steps goes, in extra iterations on batches in memory.

Steps are timed with and without the exchange of gradients. PyTorch's profiler traces the kernels of
each device. The operator that launches a kernel determines the class of the kernel. A communication
kernel first waits for all ranks, so the time of a message starts when the last rank joins.
"""

import json
import math
import os
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain, repeat
from pathlib import Path
from statistics import median
from typing import Any, get_args

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from scaling.core.records.run import KernelClass
from scaling.launch.ranks import Rank
from scaling.training.trainer import EpochResult, Trainer, TrainIterations

SETTLING_ITERATIONS = 2
IN_TURN = (True, False, False, True) * 2
"""Whether each block of steps exchanges gradients, in the order of blocks. In this order, a steady
slowdown, as at the power limit, changes the medians of both kinds of blocks equally."""
COMMUNICATION = ("nccl", "memcpy ptop", "gloo:all_reduce")
UNKNOWN: Any = repeat(("other", 0.0))
SECOND = 10**9  # nanoseconds
KEPT = ("ph", "name", "cat", "ts", "dur", "tid")
"""Fields of a trace event that are kept. Stacks, shapes and counters would make a trace large."""

Span = tuple[int, int, float]
"""Start (ns), end (ns) and number of moved bytes (0: unknown) of a kernel."""
Spans = dict[KernelClass, list[Span]]
"""Spans of a device's kernels by class. Copies and fills count as kernels. On a CPU, operators
count as kernels. The class is `other` if the launching operator is unknown."""
Messages = dict[tuple[str, int], Span]
"""Spans of a device's communication kernels. Key (name, n): the n-th kernel of a name, from 0."""
Event = dict[str, Any]
"""One event of a trace in Chrome's JSON format."""
Launches = dict[tuple[int, str], Iterator[tuple[KernelClass, float]]]
"""Maps (device, kernel name) to the class and the number of moved bytes (0: unknown) of each launch
of this kernel, in order. After the last launch, the last values repeat."""
CLASSES: dict[KernelClass, re.Pattern[str]] = {
    "communication": re.compile(r"nccl:|c10d::|_c10d_functional|record_param_comms"),
    "products": re.compile(r"aten::\w*(conv(olution|\d)|mm\b|mm_|dot|attention)|triton_tem_"),
    "copies": re.compile(r"aten::(\w*copy|clone|cat\b|_local_scalar)|fsdp::"),
    "element-wise": re.compile(r"aten::|triton_"),
}
"""Patterns of the start of an operator's name, by kernel class. The first match counts."""
LOOKUPS = re.compile(r"index|embedding|scatter")
"""Matches operators that read only a part of their input arrays."""
NO_OUTPUT = re.compile(r"triton_|.*copy_$|aten::(zero_|fill_|sum|mean|arg|nll|max_pool)")
"""Matches operators whose output `moved_bytes` ignores, as it is small or is also an input."""
ITEM_BYTES = {"float": 4, "int": 4, "c10::BFloat16": 2, "c10::Half": 2, "bool": 1}
ITEM_BYTES |= {"double": 8, "long": 8, "long int": 8, "unsigned char": 1, "TensorList": 4}
"""Bytes per element of each type in a trace. An optimizer's TensorList counts as float32."""


def measure_all(trainer: Trainer, rank: Rank, gpus: int, limit: int) -> dict[str, Any]:
    """Return where the time of this rank's steps goes in a run on `gpus` GPUs, as a dictionary.

    `in_memory` has the seconds of blocks of at most `limit` steps, with and without the exchange of
    gradients. `readings` has the seconds of communication; [] on one GPU. `device_time` has the
    busy seconds of each GPU by kernel class. Its `seconds` is the median of untraced blocks,
    because tracing makes steps longer. `step` has the trace events of one step.
    """
    place, on_gpu = {"rank": rank.index}, rank.device.type == "cuda"
    train = trainer.in_memory(limit)
    in_memory = place | _in_memory(trainer, train, limit)
    readings: list[dict[str, Any]] = []
    device_time: list[Any] = [place | {"iterations": 0, "note": "a CPU runs no kernels"}]
    if gpus > 1 or on_gpu:
        train(SETTLING_ITERATIONS)
        known = launched(trainer, train, limit, rank) if on_gpu else {}
        spans, messages, traced = record(train, limit, rank, known)
        iterations = {"iterations": traced.iterations}
        if on_gpu:
            # Tracing delays launches, not kernels, so idle time follows from untraced seconds.
            about = place | iterations | {"seconds": median(in_memory["seconds"])}
            device_time = [{**about, "gpu": n, **busy_times(spans[n])} for n in sorted(spans)]
        if gpus > 1:
            everyone = [*chain.from_iterable(rank.gather([*messages.values()]))]
            read = communication(spans, messages, everyone)
            readings = [{**place, "estimate": "profiler", **iterations, **read}]
    results = {"in_memory": in_memory, "readings": readings, "device_time": device_time}
    return results | {"step": one_step(train, rank)}


def _in_memory(trainer: Trainer, train: TrainIterations, limit: int) -> dict[str, Any]:
    """Return seconds of blocks of steps with gradient exchange, and without (None if impossible).

    All blocks have the same batches. `IN_TURN` is the order of the two kinds of blocks.
    """
    replica, blocks = trainer.replica, dict[bool, list[EpochResult]]({True: [], False: []})
    for exchange in IN_TURN:
        if exchange or replica.separable:
            with nullcontext() if exchange else replica.without_communication():
                blocks[exchange].append(train(limit, SETTLING_ITERATIONS))
    return {
        "iterations": blocks[True][0].iterations,
        "samples": blocks[True][0].samples,
        "seconds": [result.seconds for result in blocks[True]],
        "seconds_without_exchange": [result.seconds for result in blocks[False]] or None,
    }


def busy_times(spans: Spans) -> dict[str, Any]:
    """Return busy seconds of a device, in total and for each kernel class.

    Classes have the order of `KernelClass`. `running_seconds` is the time in which kernels of a
    class run, `seconds` the part of it in which no kernel of an earlier class runs.
    `busy_seconds` is the sum of all `seconds`, `compute_seconds` the sum without `communication`.
    """
    counted: list[Span] = []
    classes: dict[str, dict[str, float]] = {}
    computing = busy = 0
    for kind in [one for one in get_args(KernelClass) if one in (*spans, "communication")]:
        spans_of_class = spans.get(kind, [])
        counted += spans_of_class
        computing, busy = busy, length(counted)
        times = {"seconds": busy - computing, "running_seconds": length(spans_of_class)}
        moved = sum(size for *_, size in spans_of_class)
        classes[kind] = {name: ns / SECOND for name, ns in times.items()} | {"bytes": moved}
    device = {"busy_seconds": busy / SECOND, "compute_seconds": computing / SECOND}
    return {**device, "kernels": len(counted), "classes": classes}


def communication(
    devices: dict[int, Spans], messages: dict[int, Messages], everyone: list[Messages]
) -> dict[str, Any]:
    """Return this rank's seconds of communication: in total, exposed, overlapped, and start skew.

    `devices` and `messages` have this rank's kernels and messages by device. `everyone` has the
    messages of all devices of all ranks. A message's time is its shortest duration on any device,
    because the last device to join does not wait. `start_skew_seconds` is the rest of the duration.
    Of this rank's devices, the one that communicates longest counts. Without communication, the
    result has a `note`.
    """
    candidates = []
    for gpu, sent in messages.items():
        cut = []
        for key, (start, end, size) in sent.items():
            seconds = [other[key][1] - other[key][0] for other in everyone if key in other]
            cut.append((max(start, end - min(seconds)), end, size))
        times = busy_times({**devices[gpu], "communication": cut})["classes"]["communication"]
        skew = (length([*sent.values()]) - length(cut)) / SECOND
        candidates.append((times["running_seconds"], times["seconds"], skew))
    total, exposed, skew = max(candidates, default=(0.0, 0.0, 0.0))
    if not total:
        return {"iterations": 0, "note": "the trace shows no communication"}
    both = {"communication_seconds": total, "exposed_seconds": exposed}
    return {**both, "overlapped_seconds": max(0.0, total - exposed), "start_skew_seconds": skew}


def length(spans: list[Span]) -> int:
    """Return the length (ns) of the union of `spans`."""
    covered, latest = 0, min((start for start, *_ in spans), default=0)
    for start, end, _ in sorted(spans):
        covered += max(0, end - max(start, latest))
        latest = max(latest, end)
    return covered


def record(
    train: TrainIterations, limit: int, rank: Rank, known: Launches
) -> tuple[dict[int, Spans], dict[int, Messages], EpochResult]:
    """Trace at most `limit` steps; return kernels by device, messages by device, and the result.

    A kernel whose name contains one of `COMMUNICATION` is a message. `known` gives the class of
    others. On GPUs, the first message is left out, because it waits until all ranks trace.
    """
    on_gpu = rank.device.type == "cuda"
    activities = [ProfilerActivity.CUDA] if on_gpu else [ProfilerActivity.CPU]
    with profile(activities=activities, acc_events=True) as profiled:
        result = train(limit)
    spans: dict[int, Spans] = defaultdict(lambda: defaultdict(list))
    messages: dict[int, Messages] = defaultdict(dict)
    places: Counter[tuple[int, str]] = Counter()
    for event in sorted(profiled.events() or [], key=lambda event: event.time_range.start):
        name, device = event.name.lower(), event.device_index
        communicates = any(word in name for word in COMMUNICATION)
        computes = name.startswith("aten::") and not event.cpu_children
        if event.device_type == DeviceType.CUDA if on_gpu else communicates or computes:
            kind, size = next(known.get((device, event.name), UNKNOWN))
            start, end = (round(1000 * at) for at in (event.time_range.start, event.time_range.end))
            if not communicates:
                spans[device][kind].append((start, end, size))
                continue
            messages[device][name, places[device, name]] = (start, end, size)
            places[device, name] += 1
    for device, sent in messages.items():
        if rank.processes > 1 and on_gpu:
            del sent[next(iter(sent))]
        spans[device]["communication"] = [*sent.values()]
    return spans, messages, result


def launched(trainer: Trainer, train: TrainIterations, limit: int, rank: Rank) -> Launches:
    """Return class and moved bytes of each kernel launch, from steps without CUDA graphs.

    CUDA graphs would hide the operators that launch kernels. Return {} if GPU memory is too small.
    """
    trainer.step.replays = False
    try:
        return launches(_exported(train, limit, rank, shapes=True))
    except torch.OutOfMemoryError:
        print("no memory is left to see what launches the kernels of a step", flush=True)
        return {}
    finally:
        trainer.step.replays = True


def one_step(train: TrainIterations, rank: Rank) -> list[Event]:
    """Return this rank's trace events of one iteration; [] if the trace cannot be written."""
    host, kept, places = os.getpid(), [], {}
    for event in _exported(train, 1, rank):
        pid = event["pid"]
        # `pid` is the process id in the host's events, and the GPU's number in a GPU's.
        if event["ph"] == "X" and isinstance(pid, int) and pid >= 0:
            number = 100 * rank.index + (0 if pid == host else 1 + pid)
            places[number] = f"rank {rank.index}, {'host' if pid == host else f'GPU {pid}'}"
            kept.append({key: event[key] for key in KEPT} | {"pid": number})
    named = {"ph": "M", "name": "process_name"}
    return kept + [named | {"args": {"name": one}, "pid": pid} for pid, one in places.items()]


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


def launches(events: list[Event]) -> Launches:
    """Return the class (such as `products`) and the moved bytes of each kernel launch in a trace.

    The bytes that an operator reads and writes are divided equally among the kernels it launches.
    """
    operators = {one["args"]["External id"]: one for one in events if one.get("cat") == "cpu_op"}
    ranges = [one for one in events if one.get("cat") == "user_annotation"]
    updates = [one for one in ranges if one["name"].lower().startswith("optimizer")]
    kernels = [one for one in events if one.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    count = Counter(kernel["args"].get("External id") for kernel in kernels)
    kinds_by_place: dict[tuple[int, str], list[tuple[KernelClass, float]]] = defaultdict(list)
    for kernel in sorted(kernels, key=lambda kernel: kernel["ts"]):
        number = kernel["args"].get("External id")
        operator = operators.get(number, {"name": "", "ts": 0})
        kind = kernel_class(operator["name"])
        if any(0 <= operator["ts"] - update["ts"] <= update["dur"] for update in updates):
            kind = kind if kind == "communication" else "optimizer"
        place = kernel["pid"], kernel["name"]  # Copies between GPUs have no device.
        kinds_by_place[place].append((kind, moved_bytes(operator) / count[number]))
    return {place: chain(kinds, repeat(kinds[-1])) for place, kinds in kinds_by_place.items()}


def kernel_class(operator: str) -> KernelClass:
    """Return the class of the kernels that `operator` launches. The result is never "optimizer"."""
    return next((kind for kind, names in CLASSES.items() if names.match(operator)), "other")


def moved_bytes(operator: Event) -> float:
    """Return the number of bytes that an operator reads and writes; 0 if unknown.

    A trace lists only inputs. The output is assumed to be as large as the largest input.
    """
    name, recorded = operator["name"], operator.get("args", {})
    if LOOKUPS.search(name) or kernel_class(name) not in ("copies", "element-wise"):
        return 0.0
    shapes = zip(recorded.get("Input Dims", []), recorded.get("Input type", []), strict=True)
    sizes = [ITEM_BYTES.get(kind, 0) * _items(shape) for shape, kind in shapes]
    return float(sum(sizes) + (0 if NO_OUTPUT.match(name) else max(sizes, default=0)))


def _items(shape: list[Any]) -> int:
    """Return the number of elements in an array of `shape`. A list of shapes gives the total."""
    return sum(map(math.prod, shape)) if shape and isinstance(shape[0], list) else math.prod(shape)
