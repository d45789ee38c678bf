"""The class of a kernel, by the operators that launch it, and the bytes that it moves."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

from scaling.core.records.run import KernelClass

Event = dict[str, Any]
"""An event of a trace in Chrome's format."""
Launches = dict[tuple[int, str], Iterator[tuple[KernelClass, float]]]
"""Class and bytes (0: not known) of the kernels of each device and name, as they began; the last
repeats."""

EXCHANGES = ("nccl:", "c10d::", "_c10d_functional", "record_param_comms")
OPTIMIZER = "optimizer"
"""How the name of a range begins whose operators update the weights."""
PRODUCTS = re.compile(r"conv(olution|\d)|mm\b|mm_|::dot|attention|linear\b|triton_tem_")
COPIES = re.compile(r"aten::(\w*copy|clone|cat\b)|fsdp::")
ELEMENTWISE = re.compile(r"aten::|triton_")
LOOKUPS = re.compile(r"index|embedding|scatter")
"""Operators that read only a part of their arrays."""
NO_OUTPUT = re.compile(r"triton_|.*copy_$|aten::(zero_|fill_|sum|mean|arg|nll|max_pool)")
"""Operators whose outputs are among their recorded arrays, or small."""
ITEM_BYTES = {"float": 4, "int": 4, "c10::BFloat16": 2, "c10::Half": 2, "bool": 1}
ITEM_BYTES |= {"double": 8, "long": 8, "long int": 8, "unsigned char": 1, "TensorList": 4}
"""Bytes of an item; lists are an optimizer's, of float32."""


def launches(events: list[Event]) -> Launches:
    """Return what launched the kernels of a trace whose operators were recorded with shapes.

    An operator's bytes are divided equally among its kernels.
    """
    launching: dict[int, list[Event]] = {}
    for event, around in with_operators(events):
        if event["cat"] in ("cuda_runtime", "cuda_driver"):
            launching[event["args"]["correlation"]] = around
    kernels = [one for one in events if one.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    kernels.sort(key=lambda event: event["ts"])
    operators = [launching.get(kernel["args"]["correlation"], []) for kernel in kernels]
    count = Counter(id(own[-1]) for own in operators if own)
    found: dict[tuple[int, str], list[tuple[KernelClass, float]]] = defaultdict(list)
    for kernel, own in zip(kernels, operators, strict=True):
        size = moved_bytes(own[-1]) / count[id(own[-1])] if own else 0.0
        kind = kernel_class([operator["name"] for operator in own])
        found[kernel["args"]["device"], kernel["name"]].append((kind, size))
    return {place: chain(own, repeat(own[-1])) for place, own in found.items()}


def with_operators(events: list[Event]) -> Iterator[tuple[Event, list[Event]]]:
    """Yield each operator and launch of the host, with the operators around it, outermost first."""
    host = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver")
    events = [event for event in events if event.get("cat") in host]
    around: dict[int, list[Event]] = defaultdict(list)
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        own = around[event["tid"]]
        while own and own[-1]["ts"] + own[-1]["dur"] <= event["ts"]:
            own.pop()
        yield event, list(own)
        if event["cat"] in host[:2]:
            own.append(event)


def kernel_class(names: list[str]) -> KernelClass:
    """Return the class of a kernel that operators with these names launch, outermost first."""
    if any(name.startswith(EXCHANGES) for name in names):
        return "communication"
    if any(name.lower().startswith(OPTIMIZER) for name in names):
        return "optimizer"
    kinds: dict[KernelClass, re.Pattern[str]]
    kinds = {"products": PRODUCTS, "copies": COPIES, "element-wise": ELEMENTWISE}
    last = names[-1] if names else ""
    return next((kind for kind, words in kinds.items() if words.search(last)), "other")


def moved_bytes(operator: Event) -> float:
    """Return the bytes that an operator reads and writes, by its shapes; 0 if they are not known.

    It reads each input once and writes an output as large as the largest, but for `NO_OUTPUT`.
    """
    name, recorded = operator["name"], operator.get("args", {})
    if PRODUCTS.search(name) or LOOKUPS.search(name) or not ELEMENTWISE.match(name):
        return 0.0
    shapes = zip(recorded.get("Input Dims", []), recorded.get("Input type", []), strict=True)
    sizes = [ITEM_BYTES.get(kind, 0) * _items(shape) for shape, kind in shapes]
    return float(sum(sizes) + (0 if NO_OUTPUT.match(name) else max(sizes, default=0)))


def _items(shape: list[Any]) -> int:
    """Return the number of items of a shape, or of a list of shapes."""
    return sum(map(math.prod, shape)) if shape and isinstance(shape[0], list) else math.prod(shape)
