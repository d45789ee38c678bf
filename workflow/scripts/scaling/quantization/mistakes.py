"""How a layer's scales follow from its ranges, and the wrong formulas that documents have used.

The sound ones: with weight scale w and the input's accumulated scale A, the accumulator is in steps
of S = w · A; a bias is rounded at scale S; the output factor is o = 127 / (S · max), so that
S · o · max = 127. Each mistake changes one of these, or the images that set max.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from scaling.config.scheme import Mistake
from scaling.quantization.integers import INT32_MAX, Steps


@dataclass(frozen=True)
class LayerScales:
    """What a layer's formulas start from: steps per unit, float64.

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
    """S as the document computes it."""
    return scales.weight * scales.images if mistake == "no_product" else scales.accumulator


def bias_scale(scales: LayerScales, mistake: Mistake | None) -> Tensor:
    """The scale at which a bias becomes an integer: [outputs]."""
    accumulator = _accumulator(scales, mistake)
    if mistake == "bias_scale":
        return INT32_MAX / accumulator
    if mistake == "bias_unscaled":
        return torch.ones_like(accumulator)
    return accumulator


def output_factor(
    scales: LayerScales, max_abs: float, steps: Steps, mistake: Mistake | None
) -> Tensor:
    """o, by which the accumulator is multiplied to become the next layer's input: [outputs].

    `max_abs`, the reach of what the layer passes on, is to land on the last of `steps`.
    """
    last = 2 * steps.high + 1 if mistake == "255_for_127" else steps.high
    accumulator = _accumulator(scales, mistake)
    if mistake == "activation_scale":
        return last * max_abs / accumulator
    return last / (max_abs * accumulator)
