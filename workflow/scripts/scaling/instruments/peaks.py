"""Time matrix products and copies, from which the machine's peak rates follow."""

import math
import time
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch

from scaling.core import environment
from scaling.core.statistics import drift
from scaling.launch import ranks
from scaling.launch.measure import Probe

PRECISIONS = {"cuda": ["float32", "tf32", "bf16"], "cpu": ["float32", "bf16"]}
BLOCK_SECONDS = 0.02
"""Minimum seconds of each timed block of operations, so that the timing overhead is negligible."""
LARGEST_ON_CPU, MOST_BYTES_ON_CPU = 1024, 2**27
"""Maximum matrix size and copied bytes on a CPU, where the sizes for GPUs would take minutes."""
REST_SECONDS = 1.0
"""Seconds that a GPU idles before each measurement with state `sprint` (a burst)."""


def start(options: Probe, folder: Path) -> None:
    """Time matrix products on one GPU and copies on all GPUs, or both on the CPU; log each row."""
    limit = options.time_limit_seconds
    with ranks.joined(folder, options.device, options.cpu_threads, limit) as (rank, log):
        for row in rows(options, rank.device.type):
            log.append("row", {"row": row})
            what = ", ".join(f"{key} {value}" for key, value in row.items() if key != "seconds")
            print(f"{what}: {min(row['seconds']):.3e} to {max(row['seconds']):.3e} s", flush=True)


def rows(probe: Probe, device: str) -> Iterator[dict[str, Any]]:
    """Yield a row (see `Peak`) for each precision and matrix size, and for each copy.

    In state `sprint`, a matrix product is timed after a rest. In state `sustained`, products of the
    fastest size are repeated for `sustained_seconds` (0: no such row). While times are unsteady,
    repeats go on, up to 3 · `sustained_seconds`. The row has the times of the last repeats.
    """
    sizes, copy_bytes = probe.matrix_sizes, probe.copy_bytes
    if device == "cpu":
        sizes = [size for size in sizes if size <= LARGEST_ON_CPU] or [LARGEST_ON_CPU]
        copy_bytes = min(copy_bytes, MOST_BYTES_ON_CPU)
    count = torch.cuda.device_count() if device == "cuda" else 1
    devices = [torch.device(device, index) for index in range(count)]
    old = device == "cuda" and environment.older_gpu(environment.AMPERE)
    for precision in ["float32"] if old else PRECISIONS[device]:
        rates = {}
        for size in sizes:
            time.sleep(REST_SECONDS if device == "cuda" else 0)
            seconds = _matrix_product(precision, size, devices[0], probe.repeats)
            rates[size] = size**3 / median(seconds)
            kind = {"quantity": "matrix_product", "precision": precision, "matrix_size": size}
            yield {**kind, "state": "sprint", "seconds": seconds}
        if least := probe.sustained_seconds:
            size = max(rates, key=rates.__getitem__)
            seconds = _matrix_product(precision, size, devices[0], probe.repeats, least)
            yield {**kind, "matrix_size": size, "state": "sustained", "seconds": seconds}
    seconds = _copy(devices[0], devices[0], copy_bytes, probe.repeats)
    yield {"quantity": "device_copy", "copy_bytes": copy_bytes, "seconds": seconds}
    for source, target in permutations(devices, 2):
        seconds = _copy(source, target, copy_bytes, probe.repeats)
        kind = {"source_gpu": source.index, "target_gpu": target.index, "copy_bytes": copy_bytes}
        yield {"quantity": "gpu_to_gpu_copy", **kind, "seconds": seconds}


def _matrix_product(
    precision: str, size: int, device: torch.device, repeats: int, least: float = 0
) -> list[float]:
    # Matrices are random: with zeros, a GPU draws less power and clocks higher.
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    product = torch.empty_like(left)
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    return _repeated(lambda: torch.mm(left, right, out=product), [device], repeats, least)


def _copy(source: torch.device, target: torch.device, copy_bytes: int, repeats: int) -> list[float]:
    # Both arrays are written first, so that their memory pages exist.
    content = torch.ones(copy_bytes, dtype=torch.uint8, device=source)
    copied = torch.zeros(copy_bytes, dtype=torch.uint8, device=target)
    return _repeated(lambda: copied.copy_(content), [source, target], repeats)


def _repeated(
    operation: Callable[[], object], devices: list[torch.device], repeats: int, least: float = 0
) -> list[float]:
    """Return seconds per operation, by the host's clock, in each of the last `repeats` blocks.

    A block is several operations that take at least `BLOCK_SECONDS`. After `repeats` blocks, more
    follow until `least` seconds have passed and times are steady, or until 3 · `least` seconds.
    """

    def now() -> float:
        for device in devices:
            if device.type == "cuda":
                torch.cuda.synchronize(device)
        return perf_counter()

    def block(operations: int) -> float:
        started = now()
        for _ in range(operations):
            operation()
        return now() - started

    block(1)
    operations = math.ceil(BLOCK_SECONDS / block(1))
    block(operations)
    began, seconds = perf_counter(), [block(operations) / operations for _ in range(repeats)]
    while (passed := perf_counter() - began) < 3 * least:
        if passed >= least and drift(seconds[-repeats:])[1]:
            break
        seconds.append(block(operations) / operations)
    return seconds[-repeats:]
