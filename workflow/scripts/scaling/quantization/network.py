"""Makes quantized copies of a sequential float network: few-bit weights, or integers throughout.

All quantized networks hold the weights of the float network they are made from; nothing is trained.

The integer network, layer by layer. Let x be a layer's float input and A its accumulated scale, so
that the integer input is q ≈ A · x (for the first layer A = 127 / max|image|). With the weight
scale w_s = 127 / max|W| the layer's sum of products is

    accumulator = round(w_s · W) · q + S · bias ≈ S · (W · x + bias),      S = w_s · A,

so S holds the weight scale, the image scale and every preceding weight and output scale as one
product. The layer's own output scale o shrinks the accumulator back to int8,

    output = clamp(round(o · accumulator), -128, 127),      S · o · max|out| = 127,

and the next layer's accumulated scale is S · o. Here max|out| is the calibrated maximum of what the
layer passes on, after its ReLU: values that the clamp stops at -128 are those that ReLU makes zero
anyway. ReLU and max pooling only compare integers. The logits are int8 too, or the last accumulator
divided by its S. With a scale for each output channel w_s, S and o are vectors, and S · o is one
number still.

Every module computes in the arithmetic of what it is called with. Floats that hold integers are the
simulation, fast on any device. Integers stay integers between image and logits: int8 values are
multiplied and added up in int32, requantized by an int64 product and a shift, and back to int8. An
int32 sum cannot wrap, as no accumulator is built whose worst case leaves int32. A float bias is
added in float64. That both agree on every logit is measured, on each run.
"""

import copy
import math
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from scaling.config.scheme import Scheme
from scaling.core.errors import UserError
from scaling.quantization.calibration import IMAGES, Calibration, Layer, layers
from scaling.quantization.integers import (
    INT8,
    INT32,
    Levels,
    Requantization,
    RoundedLayer,
    activation_levels,
    along_channels,
    integer_products,
    symmetric_scale,
    to_levels,
)


class QuantizedImages(nn.Module):
    """The network's input: float images to integers in `levels`."""

    def __init__(self, scale: float, levels: Levels) -> None:
        super().__init__()
        self.scale, self.levels = scale, levels

    def forward(self, images: Tensor) -> Tensor:
        return to_levels(images, self.scale, self.levels)


class QuantizedLayer(nn.Module):
    """A convolution or linear layer on integers of `input_scale`, in `input_levels`.

    It gives integers by its `requantization`, or without one (None) the accumulator divided by its
    scale S, `accumulator_scale` [outputs]. `rounded.weight` is in the float layer's shape; `bias`
    is float64 [outputs], of `bias_scale`, and with `integer_bias` a whole number of int32.
    `accumulator_bound` is the largest |sum| of products and bias that any integer input can cause.
    """

    def __init__(
        self,
        name: str,
        layer: Layer,
        rounded: RoundedLayer,
        input_scale: float,
        input_levels: Levels,
        bias_scale: Tensor,
        requantization: Requantization | None,
        integer_bias: bool,
    ) -> None:
        super().__init__()
        self.name, self.rounded, self.requantization = name, rounded, requantization
        self.input_scale, self.input_levels = input_scale, input_levels
        self.accumulator_scale = rounded.scales * input_scale
        self.levels = requantization.levels if requantization else None
        self.integer_bias = integer_bias
        self.convolution: dict[str, Any] | None = None
        if isinstance(layer, nn.Conv2d):
            assert layer.groups == 1 and layer.dilation == (1, 1)
            self.convolution = {"stride": layer.stride, "padding": layer.padding}
        self.bias = rounded.bias * bias_scale
        if integer_bias:
            self.bias = to_levels(rounded.bias, bias_scale, INT32)
        products = rounded.weight.double().flatten(1).abs().sum(dim=1) * input_levels.amax
        self.accumulator_bound = math.ceil((products + self.bias.abs()).max().item())
        if self.accumulator_bound > INT32.high:
            raise UserError(
                f"{name} could add up to {self.accumulator_bound:.3g}, more than an int32 holds: "
                "its biases are too large for its weights; train the network differently"
            )

    @property
    def passed_scale(self) -> float:
        """S · o: the accumulated scale of the integers that the layer passes on, 1 for floats."""
        if self.requantization is None:
            return 1.0
        return float((self.accumulator_scale * self.requantization.factor)[0])

    def accumulate(self, inputs: Tensor) -> Tensor:
        """Add up products and bias: [n, outputs, …], of floats float64, exact up to 2^53.

        A convolution library may choose Winograd's or Fourier's method, whose intermediate values
        are no integers; in float64 they are off by far less than the half that rounding takes away.
        Of integers int32, or float64 with a float bias.
        """
        weight = self.rounded.weight.to(inputs.device)
        if not inputs.is_floating_point():
            sums = integer_products(inputs, weight, self.convolution)
        elif self.convolution is None:
            sums = inputs.double() @ weight.double().T
        else:
            sums = functional.conv2d(inputs.double(), weight.double(), **self.convolution).round_()
        bias = along_channels(self.bias, sums)
        return sums + (bias.to(sums.dtype) if self.integer_bias else bias)

    def forward(self, inputs: Tensor) -> Tensor:
        accumulator = self.accumulate(inputs)
        if self.requantization is None:
            return accumulator / along_channels(self.accumulator_scale, accumulator)
        passed = self.requantization(accumulator)
        return passed if inputs.is_floating_point() else passed.to(self.requantization.levels.dtype)


def quantized_layers(quantized: nn.Module) -> dict[str, QuantizedLayer]:
    """List the layers of an integer network, by name."""
    return {one.name: one for one in quantized.modules() if isinstance(one, QuantizedLayer)}


@dataclass(frozen=True)
class Builder:
    """Makes the parts of a quantized network by the `calibration` of the float one."""

    scheme: Scheme
    calibration: Calibration

    @property
    def levels(self) -> Levels:
        assert self.scheme.activation_bits is not None
        return activation_levels(self.scheme.activation_bits)

    @property
    def logits(self) -> Levels | None:
        """The levels of the last layer, None where it gives floats."""
        return None if self.scheme.logits == "float" else INT8

    def scale(self, name: str, levels: Levels) -> float:
        """Return the scale that takes the largest magnitude at `name` to the last of `levels`."""
        of = "the calibration images" if name == IMAGES else f"the outputs of {name}"
        return symmetric_scale(self.calibration[name].max_abs, of, levels.high)

    def images(self) -> QuantizedImages:
        return QuantizedImages(self.scale(IMAGES, self.levels), self.levels)

    def layer(
        self,
        name: str,
        layer: Layer,
        input_scale: float,
        levels: Levels | None,
        scale: float | None = None,
    ) -> QuantizedLayer:
        """Quantize `layer`, which is to pass on integers in `levels` of this (or its own) scale.

        The `mistakes` that documents have made change one of these, or the calibration images.
        """
        rounded, mistakes = RoundedLayer.of(name, layer, self.scheme), self.scheme.mistakes
        # The scale of the accumulator, S in the lab's text.
        before = self.images().scale if "no_product" in mistakes else input_scale
        bias_scale = accumulator = rounded.scales * before
        if "bias_scale" in mistakes:
            bias_scale = INT32.high / accumulator
        if "bias_unscaled" in mistakes:
            bias_scale = torch.ones_like(accumulator)
        rule = None
        if levels is not None:
            scale = scale or self.scale(name, levels)
            if "255_for_127" in mistakes:
                scale *= (2 * levels.high + 1) / levels.high
            if "activation_scale" in mistakes:
                scale = levels.high**2 / scale
            rule = Requantization.nearest(scale / accumulator, levels, name)
        whole = self.scheme.bias == "int32"
        return QuantizedLayer(
            name, layer, rounded, input_scale, self.levels, bias_scale, rule, whole
        )


def quantize(
    network: nn.Sequential, scheme: Scheme, calibration: Calibration | None = None
) -> nn.Sequential:
    """Copy `network` so that it computes on integers.

    Without `scheme.activation_bits` activations stay floats, and weights are rounded to integers
    and divided by their scale again. `calibration` holds the float network's ranges. Raises
    UserError when a tensor has no scale (all zero), or an accumulator could leave int32.
    """
    copied = copy.deepcopy(network).eval()
    if scheme.activation_bits is None:
        for name, layer in layers(copied).items():
            RoundedLayer.of(name, layer, scheme).assign_to(layer)
        return copied
    builder, last = Builder(scheme, calibration or {}), [*layers(network)][-1]
    modules = OrderedDict[str, nn.Module](quantize=builder.images())
    scale = builder.images().scale
    for name, module in copied.named_children():
        if isinstance(module, Layer):
            passed = builder.logits if name == last else builder.levels
            module = builder.layer(name, module, scale, passed)
            scale = module.passed_scale
        modules[name] = module
    return nn.Sequential(modules).eval()


def in_integers(quantized: nn.Module, images: Tensor) -> Tensor:
    """Compute the logits of an integer network in integer dtypes, on the device of `images`.

    They differ from those of the simulation, `quantized(images)`, in their type at most.
    """
    entrance, *modules = quantized.children()
    return nn.Sequential(*modules)(entrance(images).to(torch.int8))


def exactness(quantized: nn.Module, images: Tensor, simulated: Tensor) -> Counter[str]:
    """Count the logits computed by integers too, and how many differ from the `simulated` ones."""
    found = in_integers(quantized, images)
    differing = int((found.cpu().double() != simulated.cpu().double()).sum())
    return Counter(logits=found.numel(), differing=differing)
