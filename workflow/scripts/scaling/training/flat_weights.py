"""All weights of a model in one array, so that an update is a few kernels instead of many."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

ALIGNED_ELEMENTS = 64
"""Every tensor begins at a multiple of this: cuDNN's fast kernels want aligned weights."""


class FlatWeights:
    """Holds float32 `parameters` as views of one array, with room for gradients and momenta."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        size = sum(map(room_of, parameters))
        self.values = torch.zeros(size, device=parameters[0].device)
        self.gradients = torch.zeros_like(self.values)
        self.momenta = torch.zeros_like(self.values)
        self.views = views_of(self.values, parameters)
        for parameter, view in zip(parameters, self.views, strict=True):
            parameter.data = view.copy_(parameter.detach())


def room_of(tensor: Tensor) -> int:
    """Count the elements that a tensor takes up in the flat array."""
    return math.ceil(tensor.numel() / ALIGNED_ELEMENTS) * ALIGNED_ELEMENTS


def views_of(flat: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """Split `flat` into consecutive parts, each with shape and memory order of one of `like`."""
    parts = flat.split([room_of(tensor) for tensor in like])
    return [
        part.as_strided(tensor.shape, tensor.stride())
        for part, tensor in zip(parts, like, strict=True)
    ]
