"""Strategies: ways to spread the training of one model over several GPUs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

from scaling.core.grid import SINGLE
from scaling.registry.registry import Reference, Registry


def _all_reduced(gpus: int, gradient_bytes: float) -> float:
    """Return 2(N-1)/N · `gradient_bytes`, sent by each of N GPUs (ring: Patarasuk & Yuan 2009)."""
    return 2 * (gpus - 1) / gpus * gradient_bytes


def _copied(gpus: int, gradient_bytes: float) -> float:
    """Return 2 · `gradient_bytes`: parameters are broadcast, and gradients are reduced to GPU 0.

    NCCL does both in rings, where every GPU but the last sends all bytes to the next GPU
    (PERFORMANCE.md of nccl-tests, bus bandwidth). Buffers and outputs are not counted.
    """
    return 2 * gradient_bytes if gpus > 1 else 0.0


def _sharded(gpus: int, gradient_bytes: float) -> float:
    """Return 3(N-1)/N · `gradient_bytes`: sent by each of N GPUs in 3 equal passes of a ring.

    The passes are two all-gathers and a reduce-scatter in FSDP (Zhao et al. 2023), an all-reduce
    (two passes) and a broadcast in ZeroRedundancyOptimizer. Recipe `tuned` sends fewer bytes.
    """
    return 3 * (gpus - 1) / gpus * gradient_bytes


@dataclass(frozen=True)
class Strategy:
    """A strategy on several GPUs. The defaults are those of strategy ddp."""

    name: str
    title: str
    """Name in the literature."""
    wrap: Reference
    """Reference to a function (model, rank, gpus) → `scaling.training.strategies.Wrapped`."""
    processes: Callable[[int], int] = lambda gpus: gpus
    """Function from the number of GPUs to the number of training processes."""
    busiest_bytes: Callable[[int, float], float] = _all_reduced
    """Function (GPUs, gradient bytes) → bytes per iteration, one direction of the busiest link."""
    sweep_kinds: tuple[str, ...] = ()
    """Collectives that the strategy uses, as in `kind` of sweep.json. Empty: all-reduces only."""
    replicates: bool = True
    """Whether all ranks have equal parameters after training."""
    needs_gpu: bool = False
    spans_nodes: bool = True
    """Whether the strategy works across several machines."""


DDP = Strategy(
    name="ddp",
    title="DistributedDataParallel",
    wrap=Reference("scaling.training.strategies:ddp"),
)
DP = Strategy(
    name="dp",
    title="DataParallel",
    wrap=Reference("scaling.training.strategies:dp"),
    processes=lambda gpus: 1,
    busiest_bytes=_copied,
    sweep_kinds=("broadcast", "reduce"),
    needs_gpu=True,
    spans_nodes=False,
)
FSDP = Strategy(
    name="fsdp",
    title="FullyShardedDataParallel",
    wrap=Reference("scaling.training.strategies:fsdp"),
    busiest_bytes=_sharded,
    replicates=False,
)
ZERO1 = Strategy(
    name="zero1",
    title="ZeroRedundancyOptimizer",
    wrap=Reference("scaling.training.strategies:zero1"),
    busiest_bytes=_sharded,
)
ALONE = Strategy(
    name=SINGLE,
    title="one GPU",
    wrap=Reference("scaling.training.strategies:single"),
)
OWN = Strategy(
    name="own",
    title="a command of the user's own",
    wrap=Reference("scaling.launch.own_trainer:run"),
    processes=lambda gpus: 1,
    busiest_bytes=lambda gpus, gradient_bytes: 0.0,
    replicates=False,
)
STRATEGIES = Registry[Strategy]("strategy", Strategy, DDP, DP, FSDP, ZERO1, ALONE, OWN)


def _is_choice(name: str) -> str:
    if name not in (known := sorted({*STRATEGIES.names()} - {SINGLE, OWN.name})):
        raise ValueError(f"it should be one of {', '.join(known)}")
    return name


Choice = Annotated[str, AfterValidator(_is_choice)]
"""Name of a strategy in a configuration. Runs on one GPU and users' commands do not use it."""
