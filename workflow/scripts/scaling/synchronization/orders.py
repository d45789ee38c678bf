"""The order in which ranks see the images, as PyTorch's samplers draw it."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DistributedSampler, RandomSampler

Order = NDArray[np.int64]
"""Image indexes in the order in which one rank trains on them."""


def distributed(
    images: int, ranks: int, seed: int, epochs: int, set_epoch: bool
) -> list[dict[str, Any]]:
    """Describe each epoch of DistributedSamplers, constructed as in recipe plain."""
    samplers: list[DistributedSampler] = [
        DistributedSampler(range(images), ranks, rank, shuffle=True, seed=seed)  # type: ignore[arg-type]
        for rank in range(ranks)
    ]
    rows = []
    for epoch in range(epochs):
        for sampler in samplers:
            sampler.set_epoch(epoch if set_epoch else 0)
        rows += describe([drawn(sampler) for sampler in samplers], images, epoch)
    return rows


def random(images: int, seed: int, epochs: int) -> list[dict[str, Any]]:
    """Describe each epoch of a RandomSampler, which DataParallel uses, without set_epoch."""
    torch.manual_seed(seed)
    sampler = RandomSampler(range(images))
    return [row for epoch in range(epochs) for row in describe([drawn(sampler)], images, epoch)]


def drawn(sampler: Iterable[int]) -> Order:
    """Return the indexes that a sampler draws for one epoch."""
    return np.fromiter(sampler, dtype=np.int64)


def describe(orders: Sequence[Order], images: int, epoch: int) -> list[dict[str, Any]]:
    """Return a row for each rank's order of one epoch.

    `samples` drawn, `order_sha256` (of little-endian 64-bit integers), `overlap` (the largest
    number of distinct images shared with one other rank, null for a single rank), and, equal in all
    rows: `unseen`, the `images` that no rank draws, and `repeated`, the draws of an image beyond
    its first. DistributedSampler repeats images if the ranks do not divide their number.
    """
    sets = [set(order.tolist()) for order in orders]
    seen = set().union(*sets)
    return [
        {
            "epoch": epoch,
            "rank": rank,
            "samples": len(order),
            "order_sha256": hashlib.sha256(order.astype("<i8").tobytes()).hexdigest(),
            "overlap": max(
                (len(sets[rank] & other) for index, other in enumerate(sets) if index != rank),
                default=None,
            ),
            "unseen": images - len(seen),
            "repeated": sum(map(len, orders)) - len(seen),
        }
        for rank, order in enumerate(orders)
    ]
