"""What a peer of our quantization is: one engine's float32 and int8 network."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import Tensor

Run = Callable[[Tensor], Tensor]
"""Normalised images, float32 [n, 3, 32, 32] on the CPU, to logits, float32 [n, classes]."""

Batches = Callable[[], Iterator[Tensor]]
"""The calibration images, from the first each time it is called."""


@dataclass(frozen=True)
class Peer:
    """`runs` and the size of the file of each, by precision (float32, int8), and what was asked.

    `options` says in words which of the engine's choices were made.
    """

    options: str
    runs: dict[str, Run]
    file_bytes: dict[str, int]
