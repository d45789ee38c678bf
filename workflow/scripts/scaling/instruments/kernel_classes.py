"""The class of work that a kernel does, by the operators that launch it, and the bytes it moves."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from scaling.core.records.run import KernelClass

Event = dict[str, Any]
"""An event of a trace in Chrome's format."""

EXCHANGES = ("nccl:", "c10d::", "_c10d_functional", "record_param_comms")
OPTIMIZER = "optimizer"
"""How the name of a range begins whose operators update the weights."""
PRODUCTS = re.compile(r"conv(olution|\d)|mm\b|mm_|::dot|attention|linear\b|triton_tem_")
COPIES = re.compile(r"copy|clone|::cat\b|fsdp::")
TRITON = "triton_"
"""Kernels in Triton are recorded with each array that they read or write."""
ONLY_COPIES = re.compile(r"triton_[a-z]+_fused(_foreach_copy_?|_to_copy|_copy_?|_clone|_)*\d+")
LOOKUPS = re.compile(r"index|embedding|scatter")
"""Operators that read only a part of their arrays."""
FILLS, REDUCTIONS = re.compile(r"::(zero|fill)_"), re.compile(r"::(sum|mean|arg|nll|max|norm)")
ITEM_BYTES = {"float": 4, "int": 4, "c10::BFloat16": 2, "c10::Half": 2, "bool": 1}
ITEM_BYTES |= {"double": 8, "long": 8, "long int": 8, "unsigned char": 1, "TensorList": 4}
"""Bytes of an item; lists are an optimizer's, of float32."""


class Launched(NamedTuple):
    """A kernel's class, and the bytes that it reads and writes; None if they are not known."""

    kind: KernelClass
    bytes: float | None


UNKNOWN = Launched("other", None)
Launches = dict[tuple[int, str], list[Launched]]
"""What launched the kernels of each device and name, in the order in which they began."""


def launches(events: list[Event]) -> Launches:
    """Return what launched the kernels of a trace whose operators are recorded with shapes.

    An operator's bytes are divided equally among its kernels.
    """
    launching: dict[int, list[Event]] = {}
    for event, around in with_operators(events):
        if event["cat"] in ("cuda_runtime", "cuda_driver"):
            launching[event["args"]["correlation"]] = around
    kernels = [
        event for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    ]
    kernels.sort(key=lambda event: event["ts"])
    operators = [launching.get(kernel["args"]["correlation"], []) for kernel in kernels]
    count = Counter(id(own[-1]) for own in operators if own)
    found: Launches = defaultdict(list)
    for kernel, own in zip(kernels, operators, strict=True):
        size = moved_bytes(own[-1]) if own else None
        share = None if size is None else size / count[id(own[-1])]
        kind = kernel_class([operator["name"] for operator in own])
        found[kernel["args"]["device"], kernel["name"]].append(Launched(kind, share))
    return found


def with_operators(events: list[Event]) -> Iterator[tuple[Event, list[Event]]]:
    """Yield each operator and launch of the host, with the operators around it, outermost first."""
    host = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver")
    events = [event for event in events if event.get("cat") in host]
    around: dict[Any, list[Event]] = defaultdict(list)
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        own = around[event["tid"]]
        while own and own[-1]["ts"] + own[-1]["dur"] <= event["ts"]:
            own.pop()
        yield event, list(own)
        if event["cat"] in host[:2]:
            own.append(event)


def kernel_class(names: list[str]) -> KernelClass:
    """Return the class of a kernel that operators with these names launch, outermost first."""
    last = names[-1] if names else ""
    if any(name.startswith(EXCHANGES) for name in names):
        return "communication"
    if any(name.lower().startswith(OPTIMIZER) for name in names):
        return "optimizer"
    if PRODUCTS.search(last):
        return "products"
    if ONLY_COPIES.fullmatch(last) or (COPIES.search(last) and not last.startswith(TRITON)):
        return "copies"
    return "elementwise" if last.startswith(("aten::", TRITON)) else "other"


def moved_bytes(operator: Event) -> float | None:
    """Return the bytes that an operator reads and writes, by its shapes; None if not known.

    It reads each input once, and writes an output as large as the largest; unless it reduces them,
    only fills, or has its outputs among its inputs. What products move is not known.
    """
    name, recorded = operator["name"], operator.get("args", {})
    unknown = PRODUCTS.search(name) or LOOKUPS.search(name)
    if unknown or "Input Dims" not in recorded or not name.startswith(("aten::", TRITON)):
        return None
    shapes = zip(recorded["Input Dims"], recorded["Input type"], strict=True)
    sizes = [ITEM_BYTES.get(kind, 0) * _items(shape) for shape, kind in shapes]
    largest = max(sizes, default=0)
    if FILLS.search(name):
        return largest
    inputs_only = name.startswith(TRITON) or name.endswith("copy_") or REDUCTIONS.search(name)
    return sum(sizes) + (0 if inputs_only else largest)


def _items(shape: list[Any]) -> int:
    """Return the number of items of a shape, or of a list of shapes."""
    return sum(map(math.prod, shape)) if shape and isinstance(shape[0], list) else math.prod(shape)
