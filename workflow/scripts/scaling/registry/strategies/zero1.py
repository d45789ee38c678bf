"""ZeRO stage 1: DistributedDataParallel with the optimizer state sharded over GPUs."""

from dataclasses import replace

from scaling.registry.registry import Reference
from scaling.registry.strategies.ddp import ENTRY as DDP


def busiest_bytes(gpus: int, gradient_bytes: float) -> float:
    """Return 3(N-1)/N · K: DDP's all-reduce, and a broadcast of each GPU's updated parameters.

    ZeRO needs only 2(N-1)/N · K (Rajbhandari et al. 2020, arXiv:1910.02054, section 7); PyTorch's
    ZeroRedundancyOptimizer broadcasts in addition to DDP.
    """
    return 3 * (gpus - 1) / gpus * gradient_bytes


ENTRY = replace(
    DDP,
    name="zero1",
    title="ZeroRedundancyOptimizer",
    busiest_bytes=busiest_bytes,
    wrap=Reference("scaling.training.zero_redundancy:wrap"),
)
