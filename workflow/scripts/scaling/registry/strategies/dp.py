"""DataParallel: one process that replicates the model to every GPU in each step."""

from scaling.registry.registry import Reference
from scaling.registry.strategy import Strategy


def busiest_bytes(gpus: int, gradient_bytes: float) -> float:
    """Return 2 K: a broadcast of the parameters, and a reduction of the gradients to GPU 0.

    NCCL does both by rings, as its log and kernels (Broadcast_RING, Reduce_Sum_f32_RING) on two
    H200 show: every GPU sends K to the next, except the last of the chain. The two follow each
    other, so a link's direction carries K once or twice: the bus bandwidth of broadcast and reduce
    in nccl-tests' PERFORMANCE.md, for any N. Buffers, inputs and outputs are not counted.
    """
    return 2 * gradient_bytes if gpus > 1 else 0.0


ENTRY = Strategy(
    name="dp",
    title="DataParallel",
    processes=lambda gpus: 1,
    busiest_bytes=busiest_bytes,
    sweep_kind="gradients",
    # No overlap: parameters are sent before forward, gradients after backward.
    overlaps=False,
    replicates=True,
    needs_gpu=True,
    spans_nodes=False,
    wrap=Reference("scaling.training.data_parallel:wrap"),
)
