"""How fast this machine multiplies matrices and copies bytes: the process that measures it."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from scaling.core.environment import Device
from scaling.launch import launcher, ranks
from scaling.launch.rank_log import RankLog

PRECISIONS = {"cuda": ["float32", "tf32", "bf16"], "cpu": ["float32", "bf16"]}
BLOCK_SECONDS = 0.02
"""What one repeat takes at least, so that starting and stopping the clock weigh nothing."""


@dataclass(frozen=True)
class Probe:
    """What to measure: squares of `matrix_sizes`, copies of `copy_bytes`, each `repeats` times."""

    device: Device
    matrix_sizes: list[int]
    copy_bytes: int
    repeats: int
    cpu_threads: int


def run(probe: Probe, log_folder: Path) -> None:
    """Measure everything on the visible GPUs (or the CPU) and report to `log_folder`."""
    launcher.die_with_parent()
    torch.set_num_threads(probe.cpu_threads)
    log = RankLog(log_folder, 0)
    log.append("start", ranks.versions(probe.device))
    for row in measure(probe):
        log.append("peak", row)
        what = ", ".join(f"{key} {value}" for key, value in row.items() if key != "seconds")
        print(f"{what}: {min(row['seconds']):.3e} to {max(row['seconds']):.3e} s", flush=True)
    log.append("end", {})


def measure(probe: Probe) -> Iterator[dict[str, Any]]:
    """Rows of `scaling.peaks_record`, one per matrix size and precision, and one per copy.

    Matrix products and the copy within a device run on the first GPU, copies between GPUs on
    every ordered pair.
    """
    devices = [torch.device("cpu")]
    if probe.device == "cuda":
        devices = [torch.device("cuda", index) for index in range(torch.cuda.device_count())]
    for precision in PRECISIONS[probe.device]:
        for size in probe.matrix_sizes:
            seconds = _matrix_product(precision, size, devices[0], probe.repeats)
            kind = {"quantity": "matrix_product", "precision": precision, "matrix_size": size}
            yield {**kind, "seconds": seconds}
    seconds = _copy(devices[0], devices[0], probe.copy_bytes, probe.repeats)
    yield {"quantity": "device_copy", "copy_bytes": probe.copy_bytes, "seconds": seconds}
    for source, target in permutations(range(len(devices)), 2):
        seconds = _copy(devices[source], devices[target], probe.copy_bytes, probe.repeats)
        kind = {"quantity": "gpu_to_gpu_copy", "source_gpu": source, "target_gpu": target}
        yield {**kind, "copy_bytes": probe.copy_bytes, "seconds": seconds}


def _matrix_product(precision: str, size: int, device: torch.device, repeats: int) -> list[float]:
    # Random numbers: on zeros a GPU draws less power and clocks higher.
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    product = torch.empty_like(left)
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    return _repeated(lambda: torch.mm(left, right, out=product), [device], repeats)


def _copy(source: torch.device, target: torch.device, copy_bytes: int, repeats: int) -> list[float]:
    # Written once: memory that was only asked for has no pages of its own to read.
    content = torch.ones(copy_bytes, dtype=torch.uint8, device=source)
    copied = torch.zeros(copy_bytes, dtype=torch.uint8, device=target)
    return _repeated(lambda: copied.copy_(content), [source, target], repeats)


def _repeated(
    operation: Callable[[], object], devices: list[torch.device], repeats: int
) -> list[float]:
    """Seconds of one operation, the mean over a block of at least `BLOCK_SECONDS`, per repeat.

    Host seconds with the devices idle at both ends of a block. Before the repeats come one
    operation that is not timed, one that sets the length of a block, and a block of warm-up.
    """

    def block(operations: int) -> float:
        _synchronize(devices)
        started = perf_counter()
        for _ in range(operations):
            operation()
        _synchronize(devices)
        return perf_counter() - started

    block(1)
    operations = math.ceil(BLOCK_SECONDS / block(1))
    block(operations)
    return [block(operations) / operations for _ in range(repeats)]


def _synchronize(devices: list[torch.device]) -> None:
    for device in devices:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
