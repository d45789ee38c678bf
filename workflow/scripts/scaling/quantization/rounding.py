"""Rounds a layer's weights to integers: chooses the scales, then the level of each weight."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from scaling.config.scheme import Scheme
from scaling.quantization.calibration import Layer
from scaling.quantization.integers import symmetric_scale, to_levels, weight_levels

WORD_BYTES = 4
"""Of an int32 bias, of a scale, and of a requantization's multiplier (22 bits) with its shift."""


@dataclass(frozen=True)
class RoundedLayer:
    """A layer's weights as integers and what goes with them.

    `weight` int8 in the layer's shape, `scales` float64 [outputs] in levels per unit (all equal
    with one scale for the tensor), `bias` float64 [outputs] in float units.
    """

    weight: Tensor
    scales: Tensor
    bias: Tensor

    def packed_bytes(self, bits: int) -> int:
        """Count the bytes with weights of `bits`, an int32 bias for each output, and the scales."""
        words = len(self.bias) + len(set(self.scales.tolist()))
        return math.ceil(self.weight.numel() * bits / 8) + WORD_BYTES * words

    @torch.no_grad()
    def assign_to(self, layer: Layer) -> None:
        """Give the float `layer` the weights that the integers stand for, and the bias."""
        assert layer.bias is not None
        scales = self.scales.view(-1, *[1] * (self.weight.dim() - 1))
        layer.weight.copy_(self.weight.double() / scales)
        layer.bias.copy_(self.bias)


def nearest(weight: Tensor, scales: Tensor, bits: int) -> Tensor:
    """Round each weight [outputs, inputs] to its nearest level, halves to even."""
    return to_levels(weight, scales.unsqueeze(1), weight_levels(bits))


def weight_scales(name: str, weight: Tensor, scheme: Scheme) -> Tensor:
    """Return the scales of `weight` [outputs, inputs] that clip nothing: float64 [outputs].

    All are equal with one for the tensor. A row of zeros takes the tensor's; a tensor of zeros is
    a UserError that calls it the weights of `name`.
    """
    qmax = weight_levels(scheme.weight_bits).high
    whole = symmetric_scale(weight.abs().max().item(), f"the weights of {name}", qmax)
    largest = weight.double().abs().amax(dim=1)
    own = torch.where(largest > 0, qmax / largest, whole)
    return own if scheme.weight_scales == "channel" else torch.full_like(own, whole)


class _Nearest:
    """Rounds each weight to its nearest level, whatever a layer receives."""

    @torch.no_grad()
    def round(self, name: str, layer: Layer, scheme: Scheme, scale: float = 1.0) -> RoundedLayer:
        """Round the layer called `name`, which receives integers of this `scale`."""
        assert layer.bias is not None
        weight = layer.weight.flatten(1).double()
        scales = weight_scales(name, weight, scheme)
        integers = nearest(weight, scales, scheme.weight_bits).view_as(layer.weight)
        return RoundedLayer(integers.to(torch.int8), scales, layer.bias.double())

    def advance(self, module: nn.Module, copied: nn.Module) -> None:
        """Go on to what follows the float network's `module`, and the copy's."""


NEAREST = _Nearest()
