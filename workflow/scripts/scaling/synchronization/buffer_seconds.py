"""Seconds of an epoch by what becomes of the buffers, with no data loading among them."""

import sys
from typing import Any

import torch.distributed as dist

from scaling.launch.ranks import Rank
from scaling.synchronization import training
from scaling.synchronization.plan import Plan
from scaling.training.trainer import Material

ROUNDS = 5
"""With so many epochs of each, two kinds that take equally long have disjoint ranges by chance in
one of 126 comparisons, 2 / C(10, 5)."""


def measure(plan: Plan, rank: Rank, material: Material) -> list[dict[str, Any]]:
    """A row for each kind of buffers, round (from 1) and rank; the same rows on every rank.

    `seconds` of an epoch of recipe `course` and its `iterations`, on batches that are in memory
    already. Each kind trains a model of its own. The kinds take turns, every other round in the
    opposite order, after a round that is not among the rows.
    """
    spec = plan.spec_of("course", "ddp", plan.seeds[0])
    epochs = {
        kind: training.course(spec, rank, material, kind)[1].in_memory(sys.maxsize)
        for kind in plan.kinds
    }
    own = []
    for turn in range(1 + ROUNDS):
        for kind in plan.kinds if turn % 2 else reversed(plan.kinds):
            result = epochs[kind](sys.maxsize)
            figures = {"seconds": result.seconds, "iterations": result.iterations}
            own.append({"buffers": kind, "round": turn, "rank": rank.index, **figures})
    everyone: list[Any] = [None] * rank.processes
    dist.all_gather_object(everyone, own)
    return [row for rows in zip(*everyone, strict=True) for row in rows if row["round"]]
