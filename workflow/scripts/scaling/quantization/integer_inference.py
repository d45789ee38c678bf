"""Runs the integer network in integer dtypes alone: no float between image and logits.

It takes the same integers, scales and biases as the simulation in floats (`network`), and computes
them another way: int8 values widened to int32, convolved or multiplied and added up in int32,
requantized by an int64 product and a shift (`integers.Requantization`), and back to int8. That they
agree on every logit is measured, on each run.

int8 products must be widened first: `int8 @ int8` wraps at 127 without a word. An int32 sum cannot
wrap, as no accumulator is built whose worst case leaves int32. On the CPU only: GPUs have no
convolution of int32. A bias that is no integer (bias: float) is added in float64, which is then the
one step that is not an integer's.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from scaling.quantization.integers import INT8
from scaling.quantization.network import QuantizedImages, QuantizedLayer


def accumulate(layer: QuantizedLayer, inputs: Tensor) -> Tensor:
    """Add up int8 inputs · int8 weights + int32 bias, as int32 [n, outputs, …].

    As float64 with a float bias.
    """
    widened, weight = inputs.to(torch.int32), layer.weight.cpu().to(torch.int32)
    if layer.convolution is None:
        products = widened @ weight.T
    else:
        stride, padding = layer.convolution
        products = functional.conv2d(widened, weight, stride=stride, padding=padding)
    bias = layer.bias.cpu().view(-1, *[1] * (products.dim() - 2))
    return products + (bias.to(torch.int32) if layer.integer_bias else bias)


def finish(layer: QuantizedLayer, accumulator: Tensor) -> Tensor:
    """Requantize to int8, int32 for more bits; keep the accumulator if the output is a float."""
    if layer.requantization is None or layer.levels is None:
        return accumulator
    rule = layer.requantization.cpu()
    kept = torch.int8 if layer.levels.amax <= INT8.amax else torch.int32
    if layer.integer_bias:
        return rule.in_integers(accumulator, layer.levels).to(kept)
    return rule.in_float64(accumulator, layer.levels).to(kept)


def integer_logits(quantized: nn.Sequential, entered: Tensor) -> Tensor:
    """Compute the last layer's output for integer images `entered` [n, 3, 32, 32].

    int8 [n, classes], or int32 accumulators where the logits are floats.
    """
    values = entered.cpu().to(torch.int8)
    for module in quantized:
        if isinstance(module, QuantizedLayer):
            values = finish(module, accumulate(module, values))
        elif not isinstance(module, QuantizedImages):
            values = module(values)
    return values


@dataclass
class BitExactness:
    """How many logits were computed both ways, and how many of them differ."""

    logits: int = 0
    differing: int = 0

    def compare(self, quantized: nn.Sequential, entered: Tensor, simulated: Tensor) -> None:
        """Compute the integer `entered` images by integers and count what differs in `simulated`.

        Float logits are held to the int32 accumulator by the division that makes them floats.
        """
        found = integer_logits(quantized, entered)
        last = [module for module in quantized if isinstance(module, QuantizedLayer)][-1]
        if last.levels is None:
            found = found.double() / last.accumulator_scale.cpu()
        self.count(found, simulated)

    def count(self, found: Tensor, simulated: Tensor) -> None:
        """Add the logits `found` by integers, and count the `simulated` ones that differ."""
        self.logits += found.numel()
        self.differing += int((found.double() != simulated.cpu().double()).sum())
