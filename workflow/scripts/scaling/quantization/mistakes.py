"""Derives a layer's scales from its ranges, also by the wrong formulas that documents have used.

The sound ones: with weight scale w and the input's accumulated scale A, the accumulator has
the scale S = w · A; a bias is rounded at scale S; the output factor is o = 127 / (S · max), so that
S · o · max = 127. Each mistake changes one of these, or the images that set max.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from scaling.config.scheme import Mistake
from scaling.quantization.integers import INT32_MAX, Levels


@dataclass(frozen=True)
class LayerScales:
    """What a layer's formulas start from: levels per unit, float64.

    `weight` [outputs]; `input` the true accumulated scale of the integers that the layer receives;
    `images` that of the network's input.
    """

    weight: Tensor
    input: float
    images: float

    @property
    def accumulator(self) -> Tensor:
        """S = w · A, the scale of the integers that the layer really adds up."""
        return self.weight * self.input


def _accumulator(scales: LayerScales, mistake: Mistake | None) -> Tensor:
    """Compute S as the document does."""
    return scales.weight * scales.images if mistake == "no_product" else scales.accumulator


def bias_scale(scales: LayerScales, mistake: Mistake | None) -> Tensor:
    """Compute the scale at which a bias becomes an integer: [outputs]."""
    accumulator = _accumulator(scales, mistake)
    if mistake == "bias_scale":
        return INT32_MAX / accumulator
    if mistake == "bias_unscaled":
        return torch.ones_like(accumulator)
    return accumulator


def output_factor(
    scales: LayerScales, max_abs: float, levels: Levels, mistake: Mistake | None
) -> Tensor:
    """Compute o, which takes the accumulator to the next layer's input: [outputs].

    `max_abs`, the clipping threshold of what the layer passes on, is to land on the last level.
    """
    last = 2 * levels.high + 1 if mistake == "255_for_127" else levels.high
    accumulator = _accumulator(scales, mistake)
    if mistake == "activation_scale":
        return last * max_abs / accumulator
    return last / (max_abs * accumulator)
