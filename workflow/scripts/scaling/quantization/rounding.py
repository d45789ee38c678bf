"""A layer's weights as integers: how far the scale reaches, and which way each weight is rounded.

A rounding is any function of the float weights [outputs, inputs], the scales [outputs] and the
bits that gives integers of that shape: `nearest` here, or GPTQ's with the layer's input moments.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from scaling.config.scheme import Scheme
from scaling.quantization import gptq
from scaling.quantization.gptq import InputMoments
from scaling.quantization.integers import symmetric_scale, to_steps, weight_steps
from scaling.quantization.ranges import mse_reach

Rounding = Callable[[Tensor, Tensor, int], Tensor]
SHARES = [1 - step / 50 for step in range(40)]
"""Of the largest weight: how far a scale may reach in the search for the least output error."""


@dataclass(frozen=True)
class RoundedLayer:
    """A layer's weights in integer steps and what goes with them.

    `weight` int8 in the layer's shape, `scales` float64 [outputs] in steps per unit (all equal with
    one scale for the tensor), `bias` float64 [outputs] in float units, corrected if so asked.
    """

    weight: Tensor
    scales: Tensor
    bias: Tensor

    @property
    def float_weight(self) -> Tensor:
        """The weights that the integers stand for: weight / scale, float64."""
        return self.weight.double() / self.scales.view(-1, *[1] * (self.weight.dim() - 1))


def nearest(weight: Tensor, scales: Tensor, bits: int) -> Tensor:
    """Each weight [outputs, inputs] at its nearest step, halves to even."""
    return to_steps(weight, scales.unsqueeze(1), weight_steps(bits))


def by_moments(moments: Tensor) -> Rounding:
    """GPTQ with the second moments or covariance [inputs, inputs] of the layer's inputs."""
    return lambda weight, scales, bits: gptq.round_weights(weight, moments, scales, bits)


def weight_scales(name: str, weight: Tensor, scheme: Scheme) -> Tensor:
    """The scales of `weight` [outputs, inputs]: float64 [outputs], one for all or one for each.

    A row of zeros takes any scale, here that of its largest neighbour; a tensor of zeros is a
    UserError that calls it the weights of `name`.
    """
    last_step = weight_steps(scheme.weight_bits).high
    whole = symmetric_scale(weight.abs().max().item(), f"the weights of {name}", last_step)
    rows = weight.double().cpu()
    if scheme.weight_scales == "tensor":
        rows = rows.flatten().unsqueeze(0)
    scales = [
        last_step / _reach(row.abs(), scheme.weight_range, last_step) if row.any() else whole
        for row in rows
    ]
    return torch.tensor(scales, dtype=torch.float64, device=weight.device).expand(len(weight))


def _reach(magnitudes: Tensor, method: str, last_step: int) -> float:
    if method == "mse":
        return mse_reach(magnitudes, torch.ones(()), magnitudes.max().item(), last_step)
    return magnitudes.max().item()


def least_output_error(
    weight: Tensor, widest: Tensor, scheme: Scheme, rounding: Rounding, moments: Tensor
) -> Tensor:
    """The scales whose rounded weights [outputs, inputs] give the least output error on `moments`.

    Out of those that reach `SHARES` as far as the scales `widest`, float64 [outputs]; one share for
    all outputs where the tensor has one scale. Of equal errors the furthest reach wins.
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
    name: str,
    layer: nn.Conv2d | nn.Linear,
    scheme: Scheme,
    moments: InputMoments | None = None,
) -> RoundedLayer:
    """The weights of the layer called `name` as `scheme` asks.

    `moments` of its inputs are needed for GPTQ, for a corrected bias and for scales by the least
    output error. With GPTQ the weights first make up for the errors of the inputs.
    """
    assert layer.bias is not None
    weight = exact = layer.weight.detach().flatten(1).double()
    bias = layer.bias.detach().double()
    rounding: Rounding = nearest
    products = None
    if scheme.needs_moments:
        assert moments is not None
        centred = scheme.bias_correction
        products = moments.covariance if centred else moments.second_moment
        if scheme.rounding == "gptq":
            errors = moments.error_covariance if centred else moments.error_moment
            weight = gptq.compensate(exact, errors, products)
            rounding = by_moments(products)
    scales = weight_scales(name, weight, scheme)
    if scheme.weight_range == "output":
        assert products is not None
        scales = least_output_error(weight, scales, scheme, rounding, products)
    integers = rounding(weight, scales, scheme.weight_bits)
    if scheme.bias_correction:
        assert moments is not None
        bias = bias + gptq.bias_correction(exact, integers / scales.unsqueeze(1), moments)
    return RoundedLayer(integers.view_as(layer.weight).to(torch.int8), scales, bias)
