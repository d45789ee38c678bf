"""The orders in which ranks see the images of one epoch, and what these have in common."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Order = NDArray[np.int64]
"""Positions of images in the order in which one rank trains on them."""


def order_sha256(order: Order) -> str:
    """SHA-256 in hexadecimal over the positions as little-endian 64-bit integers."""
    return hashlib.sha256(np.ascontiguousarray(order, dtype="<i8").tobytes()).hexdigest()


def describe(orders: Sequence[Order], images: int) -> list[dict[str, Any]]:
    """One epoch, a row for each rank's order.

    `samples` drawn, `order_sha256`, `overlap` (the largest number of different images that it
    shares with one other rank, null where there is none), and of all ranks together, equal in all
    rows: `unseen`, the number of `images` that no rank draws, and `repeated`, the draws beyond the
    first of an image. DistributedSampler repeats images where the ranks do not divide their number.
    """
    sets = [set(order.tolist()) for order in orders]
    seen = set().union(*sets)
    rows = []
    for rank, order in enumerate(orders):
        shared = [len(sets[rank] & other) for index, other in enumerate(sets) if index != rank]
        rows.append(
            {
                "rank": rank,
                "samples": len(order),
                "order_sha256": order_sha256(order),
                "overlap": max(shared, default=None),
                "unseen": images - len(seen),
                "repeated": sum(map(len, orders)) - len(seen),
            }
        )
    return rows
