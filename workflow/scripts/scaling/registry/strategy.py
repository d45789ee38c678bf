"""Strategies: how the training of one model is spread over several GPUs."""

from collections.abc import Callable
from dataclasses import dataclass

from scaling.registry.registry import Reference, Registry


@dataclass(frozen=True)
class Strategy:
    """What the study has to know of a strategy; all of it concerns several GPUs.

    `title` is what the literature calls it. `processes` says how many train on N GPUs,
    `busiest_bytes` how many bytes go one way over the busiest link in one iteration, from N and the
    bytes K of all gradients. Its bandwidth is held against the interconnect sweep's messages of
    kind `sweep_kind`. It `overlaps` if it communicates during the backward pass, and `replicates`
    if all ranks end with equal parameters. It cannot do without a GPU if it `needs_gpu`, nor leave
    one machine unless it `spans_nodes`. `wrap` refers to a function from (model, rank, gpus) to a
    `scaling.training.trainer.Wrapped`.
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
