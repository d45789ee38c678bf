"""Strategies: how the training of one model is spread over several GPUs."""

from collections.abc import Callable
from dataclasses import dataclass

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


STRATEGIES = Registry[Strategy]("strategy", "scaling.registry.strategies", Strategy)
