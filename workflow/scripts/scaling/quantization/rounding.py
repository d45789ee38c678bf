"""Rounds a layer's weights to integers: chooses the scales, then the level of each weight.

A rounding is any function of the float weights [outputs, inputs], the scales [outputs] and the
bits that gives integers of that shape: `nearest` here, or GPTQ's with the layer's input moments.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from scaling.config.scheme import Scheme
from scaling.quantization import gptq
from scaling.quantization.calibration import Layer, mse_threshold
from scaling.quantization.gptq import InputMoments, input_rows
from scaling.quantization.integers import symmetric_scale, to_levels, weight_levels

WORD_BYTES = 4
"""Of an int32 bias, of a scale, and of a requantization's multiplier (22 bits) with its shift."""
Rounding = Callable[[Tensor, Tensor, int], Tensor]
SHARES = [1 - step / 50 for step in range(40)]
"""Thresholds tried in the search for the least output error, as shares of the largest weight."""
ENOUGH_ROWS = 400_000
"""A convolution sees hundreds of rows of inputs in an image, a linear layer one."""


class LayerInputs:
    """Images on their way through a float network and its quantized copy, a module at a time.

    So a layer can be quantized with what the layers before it, quantized already, really pass on.
    Both begin with the same `batches` [n, 3, 32, 32], of which all are kept. Without any, there are
    no moments to measure.
    """

    def __init__(self, batches: Iterable[Tensor] = ()) -> None:
        self.floats = list(batches)
        self.received = self.floats

    @torch.no_grad()
    def moments(self, layer: Layer, scale: float = 1.0) -> InputMoments:
        """Measure the inputs of `layer`; the copy receives integers of that `scale`.

        On all images, or on as many as give `ENOUGH_ROWS`.
        """
        found = InputMoments()
        for floats, received in zip(self.floats, self.received, strict=True):
            if found.rows >= ENOUGH_ROWS:
                break
            found.update(input_rows(layer, floats), input_rows(layer, received / scale))
        return found

    @torch.no_grad()
    def advance(self, module: nn.Module, copied: nn.Module) -> None:
        """Go through the float network's next `module`, and through the copy's."""
        self.floats = [module(batch) for batch in self.floats]
        # Levels of up to 8 bits are whole numbers in float32 too, at half the memory.
        self.received = [copied(batch).float() for batch in self.received]


@dataclass(frozen=True)
class RoundedLayer:
    """A layer's weights as integers and what goes with them.

    `weight` int8 in the layer's shape, `scales` float64 [outputs] in levels per unit (all equal
    with one scale for the tensor), `bias` float64 [outputs] in float units, corrected if so asked.
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
    """Choose the scales of `weight` [outputs, inputs]: float64 [outputs], all equal for a tensor.

    A row of zeros takes any scale, here that of the whole tensor; a tensor of zeros is a UserError
    that calls it the weights of `name`.
    """
    qmax = weight_levels(scheme.weight_bits).high
    whole = symmetric_scale(weight.abs().max().item(), f"the weights of {name}", qmax)
    rows = weight.double().cpu().abs()
    if scheme.weight_scales == "tensor":
        rows = rows.flatten().unsqueeze(0)
    thresholds = rows.amax(dim=1).tolist()
    if scheme.weight_range == "mse":
        pairs = zip(rows, thresholds, strict=True)
        thresholds = [mse_threshold(row, torch.ones(()), amax, qmax) for row, amax in pairs]
    scales = [qmax / threshold if threshold else whole for threshold in thresholds]
    return torch.tensor(scales, dtype=torch.float64, device=weight.device).expand(len(weight))


def least_output_error(
    weight: Tensor, widest: Tensor, scheme: Scheme, rounding: Rounding, moments: Tensor
) -> Tensor:
    """Find the scales whose rounded weights [outputs, inputs] err least in output on `moments`.

    Candidates are the scales `widest`, float64 [outputs], with thresholds of each of `SHARES`; one
    share for all outputs where the tensor has one scale. Of equal errors the largest threshold
    wins.
    """
    chosen = widest.clone()
    least = torch.full_like(widest, torch.inf)
    for share in SHARES:
        scales = widest / share
        difference = weight - rounding(weight, scales, scheme.weight_bits) / scales.unsqueeze(1)
        errors = gptq.output_errors(difference, moments)
        if scheme.weight_scales == "tensor":
            errors = errors.sum().expand_as(errors)
        chosen = torch.where(errors < least, scales, chosen)
        least = torch.minimum(errors, least)
    return chosen


def round_layer(
    name: str, layer: Layer, scheme: Scheme, moments: InputMoments | None = None
) -> RoundedLayer:
    """Round the weights of the layer called `name` as `scheme` asks.

    `moments` of its inputs are needed for GPTQ, for a corrected bias and for scales by the least
    output error. With GPTQ the weights first make up for the errors of the inputs.
    """
    assert layer.bias is not None
    weight = exact = layer.weight.detach().flatten(1).double()
    bias = layer.bias.detach().double()
    rounding: Rounding = nearest
    if scheme.needs_moments:
        assert moments is not None
        products, errors = moments.second(centred=scheme.bias_correction)
        if scheme.rounding == "gptq":
            weight = gptq.compensate(exact, errors, products)
            rounding = partial(gptq.round_weights, products)
    scales = weight_scales(name, weight, scheme)
    if scheme.weight_range == "output":
        scales = least_output_error(weight, scales, scheme, rounding, products)
    integers = rounding(weight, scales, scheme.weight_bits)
    if scheme.bias_correction:
        assert moments is not None
        bias = bias + gptq.bias_correction(exact, integers / scales.unsqueeze(1), moments)
    return RoundedLayer(integers.view_as(layer.weight).to(torch.int8), scales, bias)
