"""The order in which ranks see the images, as PyTorch's samplers draw it."""

import hashlib
from collections.abc import Iterable, Sequence, Sized
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DistributedSampler, RandomSampler

Order = NDArray[np.int64]
"""Image indexes in the order in which one rank trains on them."""


def distributed(
    images: Sized, ranks: int, seed: int, epochs: int, set_epoch: bool
) -> list[dict[str, Any]]:
    """Describe each epoch of DistributedSamplers, constructed as in recipe plain."""
    samplers: list[DistributedSampler] = [
        DistributedSampler(images, ranks, rank, shuffle=True, seed=seed)  # type: ignore[arg-type]
        for rank in range(ranks)
    ]
    rows = []
    for epoch in range(epochs):
        for sampler in samplers:
            sampler.set_epoch(epoch if set_epoch else 0)
        rows += describe([drawn(sampler) for sampler in samplers], len(images), epoch)
    return rows


def random(images: Sized, seed: int, epochs: int) -> list[dict[str, Any]]:
    """Describe each epoch of a RandomSampler, which DataParallel uses, without set_epoch."""
    torch.manual_seed(seed)
    sampler = RandomSampler(images)
    epoch_rows = [describe([drawn(sampler)], len(images), epoch) for epoch in range(epochs)]
    return [row for rows in epoch_rows for row in rows]


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
    rows = []
    for rank, order in enumerate(orders):
        shared = [len(sets[rank] & other) for index, other in enumerate(sets) if index != rank]
        positions = np.ascontiguousarray(order, dtype="<i8").tobytes()
        rows.append(
            {
                "epoch": epoch,
                "rank": rank,
                "samples": len(order),
                "order_sha256": hashlib.sha256(positions).hexdigest(),
                "overlap": max(shared, default=None),
                "unseen": images - len(seen),
                "repeated": sum(map(len, orders)) - len(seen),
            }
        )
    return rows
