"""The class of a kernel, by the operator that launches it, and the bytes that it moves."""

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

OPTIMIZER = "optimizer"
"""How the name of a range begins in which weights are updated."""
CLASSES: dict[KernelClass, re.Pattern[str]] = {
    "communication": re.compile(r"nccl:|c10d::|_c10d_functional|record_param_comms"),
    "products": re.compile(r"aten::\w*(conv(olution|\d)|mm\b|mm_|dot|attention)|triton_tem_"),
    "copies": re.compile(r"aten::(\w*copy|clone|cat\b|_local_scalar)|fsdp::"),
    "element-wise": re.compile(r"aten::|triton_"),
}
"""How the name of an operator begins, the first that fits."""
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
    """Return the class of a kernel that an operator of this name launches outside of updates."""
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
