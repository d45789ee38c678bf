"""Make quantized copies of a sequential float network: few-bit weights, or integers throughout.

A copy has the weights of the float network, rounded; nothing is trained.

The integer network works layer by layer. Let x be a layer's float input and A its accumulated
scale, so that the integer input is q ≈ A · x (for the first layer, A = 127 / max|image|). With the
weight scale w_s = 127 / max|W|, the layer's sum of products is

    accumulator = round(w_s · W) · q + S · bias ≈ S · (W · x + bias),      S = w_s · A,

so S holds the weight scale, the image scale and every preceding weight and output scale as one
product. The layer's own output scale o shrinks the accumulator back to int8,

    output = clamp(round(o · accumulator), -128, 127),      S · o · max|out| = 127,

and the next layer's accumulated scale is S · o. Here max|out| is the calibrated maximum of the
layer's outputs after its ReLU: values that are clamped to -128 become zero in the ReLU anyway. ReLU
and max pooling only compare integers. The logits are int8, too, or the last accumulator divided by
S. With one scale per output channel, w_s, S and o are vectors; S · o is still one number.

Every module computes in the type of its input. Floats that hold integers simulate the integer
network, fast on any device. Integers stay integers from image to logits: int8 values are
multiplied and summed in int32, then requantized to int8 by an int64 product and a shift. The sum
cannot overflow, as a layer whose worst case exceeds int32 is an error. A float bias is added in
float64. `exactness` counts the logits in which floats and integers differ.
"""

import copy
import math
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.module import register_module_forward_hook

from scaling.config.scheme import Scheme
from scaling.core.errors import UserError
from scaling.quantization.integers import (
    Layer,
    Requantization,
    along_channels,
    integer_products,
    qmax,
    round_weights,
    symmetric_scale,
    to_integers,
)

IMAGES = "images"
"""Name of the network's input, beside names of its layers."""


Calibration = dict[str, tuple[float, float]]
"""Smallest and largest output of each module, by the module's name; `IMAGES` for the images."""


def layers(network: nn.Module) -> dict[str, Layer]:
    """Return all layers with weights, by name, in order of the modules."""
    return {name: module for name, module in network.named_modules() if isinstance(module, Layer)}


def observer_points(network: nn.Module) -> dict[str, str]:
    """Map each layer's name to its ReLU's name, or to itself without a ReLU; `IMAGES` to itself."""
    points = {IMAGES: IMAGES}
    for name, module in network.named_children():
        if isinstance(module, Layer):
            layer = name
        if isinstance(module, Layer | nn.ReLU):
            points[layer] = name
    return points


@torch.no_grad()
def outputs(network: nn.Module, batch: Tensor) -> dict[str, Tensor]:
    """Return each module's output on `batch`, by name, and the batch itself as `IMAGES`."""
    results, names = {IMAGES: batch}, {module: name for name, module in network.named_modules()}

    def keep(module: nn.Module, _inputs: Any, output: Tensor) -> None:
        results[names[module]] = output

    with register_module_forward_hook(keep):
        network(batch)
    return results


def calibrate(network: nn.Module, batches: Iterable[Tensor]) -> Calibration:
    """Return the range of each module's outputs over all `batches` [n, 3, 32, 32]."""
    ranges: Calibration = {}
    for batch in batches:
        for name, values in outputs(network, batch).items():
            low, high = (end.item() for end in torch.aminmax(values))
            seen = ranges.get(name, (low, high))
            ranges[name] = min(seen[0], low), max(seen[1], high)
    return ranges


class QuantizedImages(nn.Module):
    """First module of an integer network: rounds float images to integers of `bits` bits."""

    def __init__(self, scale: float, bits: int) -> None:
        super().__init__()
        self.scale, self.bits = scale, bits

    def forward(self, images: Tensor) -> Tensor:
        return to_integers(images, self.scale, self.bits)


@dataclass(frozen=True)
class Quantizer:
    """Options to quantize a network; `calibration` has the output ranges of the float network.

    Activations have `bits` bits.
    """

    scheme: Scheme
    calibration: Calibration
    bits: int

    def scale(self, name: str, bits: int) -> float:
        """Return the scale that maps the largest |output| of module `name` to the last level."""
        of = "the calibration images" if name == IMAGES else f"the outputs of {name}"
        return symmetric_scale(max(map(abs, self.calibration[name])), of, bits)


class QuantizedLayer(nn.Module):
    """A convolution or linear layer whose inputs are integers of scale `input_scale`.

    Outputs are integers of `bits` bits, which `requantization` brings to `scale`. If `bits` and
    `scale` are None, outputs are floats: the accumulator divided by its scale S,
    `accumulator_scale` [outputs]. `weight` is int8 with `scales`. `bias` [outputs] is int32 or
    float64, in levels of the accumulator. `accumulator_bound` is the largest |products + bias| for
    any integer input. A deliberate mistake of the scheme also changes these scales.
    """

    def __init__(
        self,
        quantizer: Quantizer,
        name: str,
        layer: Layer,
        input_scale: float,
        bits: int | None,
        scale: float | None,
    ) -> None:
        super().__init__()
        self.name, self.input_scale, self.input_bits = name, input_scale, quantizer.bits
        self.convolution: dict[str, Any] | None = None
        if isinstance(layer, nn.Conv2d):
            assert layer.groups == 1 and layer.dilation == (1, 1)
            self.convolution = {"stride": layer.stride, "padding": layer.padding}
        self.weight, self.scales = round_weights(name, layer, quantizer.scheme)
        self.accumulator_scale = accumulator = self.scales.flatten() * input_scale
        mistakes = quantizer.scheme.mistakes
        if "no_product" in mistakes:
            accumulator = self.scales.flatten() * quantizer.scale(IMAGES, quantizer.bits)
        bias_scale = torch.ones_like(accumulator) if "bias_unscaled" in mistakes else accumulator
        if "bias_scale" in mistakes:
            bias_scale = qmax(32) / bias_scale
        assert layer.bias is not None
        self.bias = layer.bias.detach().double() * bias_scale
        if quantizer.scheme.bias == "int32":
            self.bias = to_integers(self.bias, 1, 32).int()
        self.requantization = None
        if bits and scale:
            last = qmax(bits)
            if "255_for_127" in mistakes:
                scale *= (2 * last + 1) / last
            if "activation_scale" in mistakes:
                scale = last**2 / scale
            self.requantization = Requantization(scale / accumulator, bits, name)
        largest = self.weight.double().flatten(1).abs().sum(dim=1) * (qmax(quantizer.bits) + 1)
        self.accumulator_bound = math.ceil((largest + self.bias.double().abs()).max().item())
        if self.accumulator_bound > qmax(32):
            raise UserError(
                f"{name} could add up to {self.accumulator_bound:.3g}, more than an int32 holds: "
                "its biases are too large for its weights; train the network differently"
            )

    @property
    def passed_scale(self) -> float:
        """Return S · o, the accumulated scale of integer outputs; 1 if outputs are floats."""
        if self.requantization is None:
            return 1.0
        return float((self.accumulator_scale * self.requantization.factor)[0])

    def accumulate(self, inputs: Tensor) -> Tensor:
        """Return products plus bias, [n, outputs, …]: float64, exact up to 2^53, for float inputs.

        Integer inputs give int32, or float64 with a float bias. A convolution library may choose
        Winograd's or Fourier's method, whose intermediate values are not integers; their error in
        float64 is far below 1/2, and rounding removes it.
        """
        weight = self.weight.to(inputs.device)
        if not inputs.is_floating_point():
            sums = integer_products(inputs, weight, self.convolution)
        elif self.convolution is None:
            sums = inputs.double() @ weight.double().T
        else:
            sums = functional.conv2d(inputs.double(), weight.double(), **self.convolution).round_()
        return sums + along_channels(self.bias, sums)

    def forward(self, inputs: Tensor) -> Tensor:
        accumulator = self.accumulate(inputs)
        if self.requantization is None:
            return accumulator / along_channels(self.accumulator_scale, accumulator)
        passed: Tensor = self.requantization(accumulator)
        # A float bias makes floats of integers.
        return passed if inputs.is_floating_point() else passed.to(self.requantization.dtype)


def quantized_layers(quantized: nn.Module) -> dict[str, QuantizedLayer]:
    """Return the layers of an integer network, by name."""
    return {one.name: one for one in quantized.modules() if isinstance(one, QuantizedLayer)}


@torch.no_grad()
def quantize(network: nn.Module, scheme: Scheme, calibration: Calibration) -> nn.Module:
    """Return an integer copy of `network`: modules `quantize` (of images), then `network`.

    A `QuantizedLayer` replaces each layer with weights. If `scheme.activation_bits` is None, the
    copy has float layers, with weights that were rounded and divided by their scales. UserError if
    a tensor has no scale (all zero), or if an accumulator could exceed int32.
    """
    copied = copy.deepcopy(network).eval()
    if scheme.activation_bits is None:
        for name, layer in layers(copied).items():
            weight, scales = round_weights(name, layer, scheme)
            layer.weight.copy_(weight / scales)
        return copied
    logits = None if scheme.logits == "float" else 8
    quantizer = Quantizer(scheme, calibration, scheme.activation_bits)
    points, received = observer_points(network), quantizer.scale(IMAGES, quantizer.bits)
    images = QuantizedImages(received, quantizer.bits)
    for name, layer in layers(copied).items():
        bits = logits if name == [*points][-1] else quantizer.bits
        scale = quantizer.scale(points[name], bits) if bits else None
        quantized = QuantizedLayer(quantizer, name, layer, received, bits, scale)
        copied.set_submodule(name, quantized)
        received = quantized.passed_scale
    return nn.Sequential(OrderedDict(quantize=images, network=copied)).eval()


@torch.no_grad()
def exactness(
    quantized: nn.Module, batches: Iterable[Tensor], device: torch.device
) -> dict[str, int]:
    """Return the number of `logits`, and how many are `differing` between integers and floats.

    Integers are computed on `device`; floats that hold integers, on the device of `batches`.
    """
    entrance, network = quantized.children()
    logits = differing = 0
    for batch in batches:
        logits_of_batch = network(entrance(batch).to(device, torch.int8)).cpu().double()
        logits += logits_of_batch.numel()
        differing += int((logits_of_batch != quantized(batch).cpu().double()).sum())
    return {"logits": logits, "differing": differing}
