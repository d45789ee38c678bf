"""FullyShardedDataParallel: each GPU keeps a part of parameters, gradients and optimizer state."""

from scaling.registry.registry import Reference
from scaling.registry.strategies.ddp import processes
from scaling.registry.strategy import Strategy


def busiest_bytes(gpus: int, gradient_bytes: float) -> float:
    """3(N-1)/N · K: parameters are gathered for either pass, gradients reduced (Zhao et al. 2023).

    Each is a ring that sends (N-1)/N of its bytes from each GPU.
    """
    return 3 * (gpus - 1) / gpus * gradient_bytes


ENTRY = Strategy(
    name="fsdp",
    title="FullyShardedDataParallel",
    processes=processes,
    busiest_bytes=busiest_bytes,
    sweep_kind="bucket",
    all_reduces=False,
    overlaps=True,
    replicates=False,
    needs_gpu=False,
    spans_nodes=True,
    most_gpus=1024,
    wrap=Reference("scaling.training.fully_sharded:wrap"),
)
