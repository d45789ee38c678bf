"""Strategies: how the training of one model is spread over several GPUs."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from scaling.registry.registry import Reference, Registry


@dataclass(frozen=True)
class Strategy:
    """A strategy; all fields concern several GPUs.

    `title` is its name in the literature. `processes` returns the number of training processes on N
    GPUs, `busiest_bytes` the bytes per iteration in one direction of the busiest link, from N and
    the bytes K of all gradients. Its bandwidth is compared with the sweep's messages of kind
    `sweep_kind`. `overlaps` means that it communicates during the backward pass, `replicates` that
    all ranks end with equal parameters, `needs_gpu` that it requires GPUs, `spans_nodes` that it
    can use several machines. `wrap` refers to a function from (model, rank, gpus) to a
    `scaling.training.wrapped.Wrapped`.
    """

    name: str
    title: str
    processes: Callable[[int], int]
    busiest_bytes: Callable[[int, float], float]
    sweep_kind: str
    overlaps: bool
    replicates: bool
    needs_gpu: bool
    spans_nodes: bool
    wrap: Reference


def _all_reduced(gpus: int, gradient_bytes: float) -> float:
    """Return 2(N-1)/N · K, which each GPU sends in a ring all-reduce (Patarasuk & Yuan 2009)."""
    return 2 * (gpus - 1) / gpus * gradient_bytes


def _copied(gpus: int, gradient_bytes: float) -> float:
    """Return 2 K: a broadcast of the parameters, and a reduction of the gradients to GPU 0.

    NCCL does both by rings, as its log and kernels (Broadcast_RING, Reduce_Sum_f32_RING) on two
    H200 show: every GPU sends K to the next, except the last of the chain. The two follow each
    other, so a link's direction carries K once or twice: the bus bandwidth of broadcast and reduce
    in nccl-tests' PERFORMANCE.md, for any N. Buffers, inputs and outputs are not counted.
    """
    return 2 * gradient_bytes if gpus > 1 else 0.0


def _sharded(gpus: int, gradient_bytes: float) -> float:
    """Return 3(N-1)/N · K, of three rings that each send (N-1)/N of their bytes from each GPU.

    FSDP's are an all-gather in both passes and a reduce-scatter (Zhao et al. 2023). ZeRO needs only
    2(N-1)/N · K (Rajbhandari et al. 2020, arXiv:1910.02054, section 7); PyTorch's
    ZeroRedundancyOptimizer broadcasts updated parameters in addition to DDP's all-reduce. What
    recipe tuned sends is less (`sent_share`).
    """
    return 3 * (gpus - 1) / gpus * gradient_bytes


DDP = Strategy(
    name="ddp",
    title="DistributedDataParallel",
    processes=lambda gpus: gpus,
    busiest_bytes=_all_reduced,
    sweep_kind="bucket",
    overlaps=True,
    replicates=True,
    needs_gpu=False,
    spans_nodes=True,
    wrap=Reference("scaling.training.distributed_data_parallel:wrap"),
)
DP = Strategy(
    name="dp",
    title="DataParallel",
    processes=lambda gpus: 1,
    busiest_bytes=_copied,
    sweep_kind="gradients",
    # No overlap: parameters are sent before forward, gradients after backward.
    overlaps=False,
    replicates=True,
    needs_gpu=True,
    spans_nodes=False,
    wrap=Reference("scaling.training.data_parallel:wrap"),
)
FSDP = replace(
    DDP,
    name="fsdp",
    title="FullyShardedDataParallel",
    busiest_bytes=_sharded,
    replicates=False,
    wrap=Reference("scaling.training.fully_sharded:wrap"),
)
ZERO1 = replace(
    DDP,
    name="zero1",
    title="ZeroRedundancyOptimizer",
    busiest_bytes=_sharded,
    wrap=Reference("scaling.training.zero_redundancy:wrap"),
)
OWN = Strategy(
    name="own",
    title="a command of the user's own",
    processes=lambda gpus: 1,
    busiest_bytes=lambda gpus, gradient_bytes: 0.0,
    sweep_kind="",
    overlaps=False,
    replicates=False,
    needs_gpu=False,
    spans_nodes=True,
    wrap=Reference("scaling.command.own_trainer:run"),
)
STRATEGIES = Registry[Strategy]("strategy", Strategy, DDP, DP, FSDP, ZERO1, OWN)
