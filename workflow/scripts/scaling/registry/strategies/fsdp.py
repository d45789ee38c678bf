"""FullyShardedDataParallel: parameters, gradients and optimizer state sharded over GPUs."""

from dataclasses import replace

from scaling.registry.registry import Reference
from scaling.registry.strategies.ddp import ENTRY as DDP


def busiest_bytes(gpus: int, gradient_bytes: float) -> float:
    """Return 3(N-1)/N · K: all-gather in both passes, reduce-scatter (Zhao et al. 2023).

    Each is a ring that sends (N-1)/N of its bytes from each GPU.
    """
    return 3 * (gpus - 1) / gpus * gradient_bytes


ENTRY = replace(
    DDP,
    name="fsdp",
    title="FullyShardedDataParallel",
    busiest_bytes=busiest_bytes,
    replicates=False,
    wrap=Reference("scaling.training.fully_sharded:wrap"),
)
