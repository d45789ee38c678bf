"""Rounds the layers of a network by the moments of what each of them receives."""

from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import Tensor, nn

from extras.bits import gptq
from extras.bits.gptq import InputMoments, input_rows
from scaling.config.scheme import Scheme
from scaling.quantization.calibration import Layer
from scaling.quantization.rounding import Nearest, RoundedLayer, nearest, weight_scales

Rounding = Callable[[Tensor, Tensor, int], Tensor]
"""From float weights [outputs, inputs], scales [outputs] and bits to integers of that shape."""
SHARES = [1 - step / 50 for step in range(40)]
"""Thresholds tried in the search for the least output error, as shares of the largest weight."""
ENOUGH_ROWS = 400_000
"""A convolution sees hundreds of rows of inputs in an image, a linear layer one."""


class ByMoments(Nearest):
    """Rounds each layer for the inputs that it has in the quantized network.

    Images go through the float network and its quantized copy, a module at a time, so that a layer
    is rounded with what the layers before it, quantized already, really pass on. Both begin with
    the same `batches` [n, 3, 32, 32], of which all are kept.
    """

    def __init__(self, batches: Iterable[Tensor]) -> None:
        self.floats = list(batches)
        self.received = self.floats

    def round(self, name: str, layer: Layer, scheme: Scheme, scale: float) -> RoundedLayer:
        return round_layer(name, layer, scheme, self.moments(layer, scale))

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


def round_layer(name: str, layer: Layer, scheme: Scheme, moments: InputMoments) -> RoundedLayer:
    """Round the weights of the layer called `name` as `scheme` asks, by its inputs' `moments`.

    With GPTQ the weights first make up for the errors of the inputs.
    """
    assert layer.bias is not None
    weight = exact = layer.weight.detach().flatten(1).double()
    bias = layer.bias.detach().double()
    rounding: Rounding = nearest
    products, errors = moments.second(centred=scheme.bias_correction)
    if scheme.rounding == "gptq":
        weight = gptq.compensate(exact, errors, products)
        rounding = partial(gptq.round_weights, products)
    scales = weight_scales(name, weight, scheme)
    if scheme.weight_range == "output":
        scales = least_output_error(weight, scales, scheme, rounding, products)
    integers = rounding(weight, scales, scheme.weight_bits)
    if scheme.bias_correction:
        bias = bias + gptq.bias_correction(exact, integers / scales.unsqueeze(1), moments)
    return RoundedLayer(integers.view_as(layer.weight).to(torch.int8), scales, bias)
