"""One flat array for all weights of a model, so that an update needs few kernels."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

ALIGNED_ELEMENTS = 64
"""Every tensor starts at a multiple of this, as cuDNN's fast kernels need aligned weights."""


class FlatWeights:
    """Holds float32 `parameters` as views of one array, and arrays for gradients and momenta."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        size = sum(map(room_of, parameters))
        self.values = torch.zeros(size, device=parameters[0].device)
        self.gradients = torch.zeros_like(self.values)
        self.momenta = torch.zeros_like(self.values)
        self.views = views_of(self.values, parameters)
        for parameter, view in zip(parameters, self.views, strict=True):
            parameter.data = view.copy_(parameter.detach())


def room_of(tensor: Tensor) -> int:
    """Return the elements that a tensor takes up in the flat array, with padding."""
    return math.ceil(tensor.numel() / ALIGNED_ELEMENTS) * ALIGNED_ELEMENTS


def views_of(flat: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """Split `flat` into consecutive views with the shapes and memory formats of `like`."""
    parts = flat.split([room_of(tensor) for tensor in like])
    return [
        part.as_strided(tensor.shape, tensor.stride())
        for part, tensor in zip(parts, like, strict=True)
    ]
