"""FullyShardedDataParallel: each GPU keeps a part of parameters, gradients and optimizer state."""

from dataclasses import replace

from scaling.registry.registry import Reference
from scaling.registry.strategies.ddp import ENTRY as DDP


def busiest_bytes(gpus: int, gradient_bytes: float) -> float:
    """3(N-1)/N · K: parameters are gathered for either pass, gradients reduced (Zhao et al. 2023).

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
