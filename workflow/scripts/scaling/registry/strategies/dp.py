"""DataParallel: one process that copies the model to every GPU in each step."""

from scaling.registry.registry import Reference
from scaling.registry.strategy import Strategy


def busiest_bytes(gpus: int, gradient_bytes: float) -> float:
    """2 K: parameters go round the GPUs as one broadcast, gradients to GPU 0 as one reduce.

    NCCL does both by rings, as its log and kernels (Broadcast_RING, Reduce_Sum_f32_RING) on two
    H200 show: in each, every GPU sends K on to the next but the last of the chain. They follow one
    another, so a link's direction carries K, then the same or another one K: the bus bandwidth of
    broadcast and reduce in nccl-tests' PERFORMANCE.md, whatever N. Buffers, inputs and outputs come
    on top and are not counted.
    """
    return 2 * gradient_bytes if gpus > 1 else 0.0


ENTRY = Strategy(
    name="dp",
    title="DataParallel",
    processes=lambda gpus: 1,
    busiest_bytes=busiest_bytes,
    sweep_kind="gradients",
    # Parameters go out before the forward pass, gradients come back after the backward pass.
    overlaps=False,
    replicates=True,
    needs_gpu=True,
    spans_nodes=False,
    wrap=Reference("scaling.training.data_parallel:wrap"),
)
