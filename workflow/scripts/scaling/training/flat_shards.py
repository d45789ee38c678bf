"""Strategy `zero1` of engine `resident`: `FlatSGD` by shards, which a CUDA graph can capture."""

import math
from typing import Any

import torch.distributed as dist
from torch import Tensor, nn

from scaling.training.flat_sgd import ALIGNED_ELEMENTS, FlatSGD


class FlatShards(FlatSGD):
    """SGD on one flat array of which each rank updates an equal part, and has the momenta of it.

    A reduce-scatter sums each part's gradients on its rank, an all-gather sends the weights after
    the update: stage 1 of ZeRO (arXiv:1910.02054; by its section 7, bytes are as an all-reduce's).
    """

    def __init__(self, model: nn.Module, ranks: int, *options: Any) -> None:
        super().__init__(model, ranks, *options)
        size = math.ceil(len(self._weights) / ranks / ALIGNED_ELEMENTS) * ALIGNED_ELEMENTS
        self._padded = [resized(flat, size * ranks) for flat in (self._weights, self.gradients)]
        self._own = [flat.split(size)[dist.get_rank()] for flat in self._padded]
        self._momenta = resized(self._momenta, size)

    def parallel(self, forward: nn.Module) -> nn.Module:
        return forward  # `step` sends.

    @property
    def bucket_bytes(self) -> list[int]:
        return [self._weights.nbytes]

    @property
    def sent_share(self) -> float:
        # Both messages, of the formula's three in float32.
        return sum(flat.itemsize for flat in self._padded) / (3 * self._weights.itemsize)

    def backward(self, loss: Tensor, share: float) -> None:
        super().backward(loss, share / self._ranks)  # Ranks sum their gradients: to the mean.

    def step(self) -> None:
        self._gather()
        (weights, gradients), (own_weights, own_gradients) = self._padded, self._own
        if self.sends:
            dist.reduce_scatter_tensor(own_gradients, gradients)
        self._sgd(
            *(own_weights, self._momenta, own_gradients, None, self._rate, self._momentum),
            *(self._weight_decay, self._rule.nesterov),
        )
        if self.sends:
            dist.all_gather_into_tensor(weights, own_weights)
        self.refresh()


def resized(flat: Tensor, size: int) -> Tensor:
    """Return `flat` with `size` elements in the same storage, so that its views stay valid."""
    flat.untyped_storage().resize_(size * flat.itemsize)
    return flat.as_strided((size,), (1,))
