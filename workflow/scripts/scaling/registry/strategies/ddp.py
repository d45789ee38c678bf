"""DistributedDataParallel: one process per GPU, gradients averaged by all-reduce."""

from scaling.registry.registry import Reference
from scaling.registry.strategy import Strategy


def busiest_bytes(gpus: int, gradient_bytes: float) -> float:
    """Return 2(N-1)/N · K, which each GPU sends in a ring all-reduce (Patarasuk & Yuan 2009)."""
    return 2 * (gpus - 1) / gpus * gradient_bytes


ENTRY = Strategy(
    name="ddp",
    title="DistributedDataParallel",
    processes=lambda gpus: gpus,
    busiest_bytes=busiest_bytes,
    sweep_kind="bucket",
    overlaps=True,
    replicates=True,
    needs_gpu=False,
    spans_nodes=True,
    wrap=Reference("scaling.training.distributed_data_parallel:wrap"),
)
