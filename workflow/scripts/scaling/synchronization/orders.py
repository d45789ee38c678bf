"""The orders in which ranks see the images: as PyTorch's samplers draw them, and compared."""

import hashlib
from collections.abc import Iterable, Sequence, Sized
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DistributedSampler, RandomSampler

Order = NDArray[np.int64]
"""Positions of images in the order in which one rank trains on them."""


def distributed(
    images: Sized, ranks: int, seed: int, epochs: int, set_epoch: bool
) -> list[dict[str, Any]]:
    """Describe each epoch of DistributedSamplers, made as recipe plain makes them."""
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
    """Describe each epoch of DataParallel's one process: a RandomSampler, without set_epoch."""
    torch.manual_seed(seed)
    sampler = RandomSampler(images)
    epoch_rows = [describe([drawn(sampler)], len(images), epoch) for epoch in range(epochs)]
    return [row for rows in epoch_rows for row in rows]


def drawn(sampler: Iterable[int]) -> Order:
    """Draw the positions of one epoch from a sampler."""
    return np.fromiter(sampler, dtype=np.int64)


def describe(orders: Sequence[Order], images: int, epoch: int) -> list[dict[str, Any]]:
    """Describe one epoch by a row for each rank's order.

    `samples` drawn, `order_sha256` (of little-endian 64-bit integers), `overlap` (the largest
    number of different images that it shares with one other rank, null where there is none), and of
    all ranks together, equal in all rows: `unseen`, the number of `images` that no rank draws, and
    `repeated`, the draws beyond the first of an image. DistributedSampler repeats images where the
    ranks do not divide their number.
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
