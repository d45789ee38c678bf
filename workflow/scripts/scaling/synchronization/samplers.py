"""The orders that PyTorch's samplers draw, epoch by epoch, without any training."""

from collections.abc import Iterable, Sized
from typing import Any

import numpy as np
import torch
from torch.utils.data import DistributedSampler, RandomSampler

from scaling.synchronization import shards


def distributed(
    images: Sized, ranks: int, seed: int, epochs: int, set_epoch: bool
) -> list[dict[str, Any]]:
    """Rows of `shards.describe` for each epoch, of samplers made as recipe course makes them."""
    samplers: list[DistributedSampler] = [
        DistributedSampler(images, ranks, rank, shuffle=True, seed=seed)  # type: ignore[arg-type]
        for rank in range(ranks)
    ]
    rows = []
    for epoch in range(epochs):
        for sampler in samplers:
            if set_epoch:
                sampler.set_epoch(epoch)
        rows += _epoch(samplers, len(images), epoch)
    return rows


def random(images: Sized, seed: int, epochs: int) -> list[dict[str, Any]]:
    """The same for DataParallel's one process: a RandomSampler, which nobody tells the epoch."""
    torch.manual_seed(seed)
    sampler = RandomSampler(images)
    return [row for epoch in range(epochs) for row in _epoch([sampler], len(images), epoch)]


def order(sampler: Iterable[int]) -> shards.Order:
    """The positions that a sampler draws now."""
    return np.fromiter(sampler, dtype=np.int64)


def _epoch(samplers: list[Any], images: int, epoch: int) -> list[dict[str, Any]]:
    rows = shards.describe([order(sampler) for sampler in samplers], images)
    return [{"epoch": epoch, **row} for row in rows]
