"""A layer's weights as integers: how far the scale reaches, and which way each weight is rounded.

A rounding is any function of the float weights [outputs, inputs], the scales [outputs] and the
bits that gives integers of that shape: `nearest` here, or GPTQ's with the layer's input moments.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from scaling import gptq
from scaling.gptq import InputMoments
from scaling.quantization import symmetric_scale, to_steps, weight_steps
from scaling.quantization_scheme import Scheme
from scaling.ranges import mse_reach

Rounding = Callable[[Tensor, Tensor, int], Tensor]


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
    if method == "max_abs":
        return magnitudes.max().item()
    return mse_reach(magnitudes, torch.ones(()), magnitudes.max().item(), last_step)


def round_layer(
    name: str,
    layer: nn.Conv2d | nn.Linear,
    scheme: Scheme,
    moments: InputMoments | None = None,
) -> RoundedLayer:
    """The weights of the layer called `name` as `scheme` asks.

    `moments` of its float inputs are needed for GPTQ and for a corrected bias.
    """
    assert layer.bias is not None
    weight = layer.weight.detach().flatten(1)
    scales = weight_scales(name, weight, scheme)
    rounding: Rounding = nearest
    if scheme.rounding == "gptq":
        assert moments is not None
        rounding = by_moments(
            moments.covariance if scheme.bias_correction else moments.second_moment
        )
    integers = rounding(weight, scales, scheme.weight_bits)
    bias = layer.bias.detach().double()
    if scheme.bias_correction:
        assert moments is not None
        bias = bias + gptq.bias_correction(weight, integers / scales.unsqueeze(1), moments.mean)
    return RoundedLayer(integers.view_as(layer.weight).to(torch.int8), scales, bias)


@torch.no_grad()
def input_moments(network: nn.Sequential, batches: Iterable[Tensor]) -> dict[str, InputMoments]:
    """The moments of every layer's inputs on `batches` in the float `network`, by its name."""
    found: dict[str, InputMoments] = {}
    for batch in batches:
        values = batch
        for name, module in network.named_children():
            if isinstance(module, nn.Conv2d | nn.Linear):
                rows = gptq.input_rows(module, values)
                found.setdefault(name, InputMoments()).see(rows)
            values = module(values)
    return found
