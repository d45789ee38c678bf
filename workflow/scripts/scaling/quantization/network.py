"""Quantize a sequential float network: only its weights, or all values of the computation.

A scale s is the number of integer levels per unit: q = round(s · x), so x ≈ q / s. (Jacob et al.
2018, "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
Inference", call 1 / s the scale.) With s = 127 / max|x| of a tensor, or of an output channel, the
largest value becomes ±127, and nothing is clipped. For b bits, 127 becomes 2^(b-1) - 1.

Let x be the float input of a layer and A its scale, so that the integer input is q ≈ A · x. For
the first layer, A = 127 / max|image|. With the weight scale w_s = 127 / max|W|, the layer computes

    accumulator = round(w_s · W) · q + S · bias ≈ S · (W · x + bias),      S = w_s · A.

The output scale o brings the accumulator back to int8:

    output = clamp(round(o · accumulator), -128, 127),      S · o · max|out| = 127.

Then S · o is the scale A of the next layer. The calibrated maximum max|out| is taken after the
layer's ReLU, which sets negative values to zero anyway. ReLU and max pooling only compare integers.
Logits are int8, or the last accumulator divided by S. With one scale per output channel, w_s, S and
o are vectors; S · o is still one number.

Integers are stored as float64, which represents all int32 sums and their products exactly. It is an
error if the largest possible sum of a layer exceeds int32.
"""

import copy
import math
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from scaling.config.scheme import Scheme
from scaling.core.errors import UserError

Layer = nn.Conv2d | nn.Linear
WORD_BYTES = 4
"""Size in bytes of an int32 bias, of a scale, and of an output factor."""
IMAGES = "images"
"""Key of the input images in dictionaries whose other keys are names of layers."""
Calibration = dict[str, tuple[float, float]]
"""Smallest and largest value of the images, and of each layer's output after its ReLU, if any."""


def qmax(bits: int) -> int:
    """Return the largest signed integer of `bits` bits. The smallest is -qmax(bits) - 1."""
    return int(2 ** (bits - 1)) - 1


def symmetric_scale(max_abs: float, of: str, bits: int = 8) -> float:
    """Return the scale (levels per unit) that maps the magnitude `max_abs` to level `qmax(bits)`.

    UserError if `max_abs` is not positive and finite. The error message calls the values `of`.
    """
    if not (math.isfinite(max_abs) and max_abs > 0):
        raise UserError(
            f"{of} have no int8 scale, as their largest magnitude is {max_abs}; "
            "check the dataset and train the network again"
        )
    return qmax(bits) / max_abs


def to_integers(values: Tensor, scale: float | Tensor, bits: int) -> Tensor:
    """Return scale · values as float64: rounded half to even, clamped to `bits`-bit integers."""
    return (values.double() * scale).round_().clamp_(-qmax(bits) - 1, qmax(bits))


@torch.no_grad()
def round_weights(name: str, layer: Layer, scheme: Scheme) -> tuple[Tensor, Tensor]:
    """Return the integer weights of a layer, and their scales [outputs, 1, …], both float64.

    Without a scale per channel, all scales are equal. A channel of zeros has the scale of the whole
    tensor. UserError, with the layer's `name`, if all weights are zero.
    """
    bits = scheme.weight_bits
    largest = layer.weight.double().abs().amax(dim=[*range(1, layer.weight.dim())], keepdim=True)
    whole = symmetric_scale(largest.max().item(), f"the weights of {name}", bits)
    scales = torch.full_like(largest, whole)
    if scheme.weight_scales == "channel":
        scales = torch.where(largest > 0, qmax(bits) / largest, whole)
    return to_integers(layer.weight, scales, bits), scales


def packed_bytes(weight: Tensor, scales: Tensor, bits: int) -> int:
    """Return a layer's size in bytes: weights of `bits` bits, int32 biases, and distinct scales."""
    words = len(scales) + len(scales.unique())
    return math.ceil(weight.numel() * bits / 8) + WORD_BYTES * words


def layers(network: nn.Module) -> dict[str, Any]:
    """Return the convolutions and linear layers, float or quantized, by name, in order."""
    kinds = Layer | QuantizedLayer
    return {name: module for name, module in network.named_children() if isinstance(module, kinds)}


def observer_points(network: nn.Module) -> dict[str, str]:
    """Return a dictionary from a layer's name to the name of the module that gives its result.

    That module is the ReLU after the layer or, without a ReLU, the layer. `IMAGES` maps to itself.
    """
    points = {IMAGES: IMAGES}
    for name, module in network.named_children():
        if isinstance(module, Layer):
            layer = name
        if isinstance(module, Layer | nn.ReLU):
            points[layer] = name
    return points


@torch.no_grad()
def outputs(network: nn.Module, batch: Tensor) -> dict[str, Tensor]:
    """Return the output of each module on `batch`, by name, and the batch itself as `IMAGES`."""
    results = {IMAGES: batch}
    for name, module in network.named_children():
        batch = results[name] = module(batch)
    return results


def calibrate(network: nn.Module, batches: Iterable[Tensor]) -> Calibration:
    """Return the range of the outputs of each layer over all `batches` [n, 3, 32, 32]."""
    ranges, points = Calibration(), observer_points(network)
    for batch in batches:
        values = outputs(network, batch)
        for name, at in points.items():
            low, high = (end.item() for end in torch.aminmax(values[at]))
            least, most = ranges.get(name, (low, high))
            ranges[name] = min(least, low), max(most, high)
    return ranges


class QuantizedImages(nn.Module):
    """The first module of an integer network. It rounds float images to integers."""

    def __init__(self, scale: float, bits: int) -> None:
        super().__init__()
        self.scale, self.bits = scale, bits

    def forward(self, images: Tensor) -> Tensor:
        return to_integers(images, self.scale, self.bits)


class QuantizedLayer(nn.Module):
    """A convolution or linear layer that computes with integers.

    A scale is a number of integer levels per unit: `input_scale` of inputs, `scales` of weights,
    and S = `accumulator_scale` of a sum (products by the module `products`, plus `bias`). An output
    of `bits` bits is the sum · `factor`; for `largest`, the largest |output| of the float layer, it
    is the largest integer. If `bits` is None, an output is the float sum / S. `accumulator_bound`
    is the largest |sum| for any integer input. `scheme.mistakes` are deliberate errors of these
    scales; one of them uses `images_scale`, the scale of the images.
    """

    def __init__(
        self,
        scheme: Scheme,
        name: str,
        layer: Layer,
        input_scale: float,
        images_scale: float,
        bits: int | None,
        largest: float,
    ) -> None:
        super().__init__()
        self.input_scale, self.bits = input_scale, bits
        weight, self.scales = round_weights(name, layer, scheme)
        # [outputs, 1, 1] for images, [outputs] for vectors
        self.accumulator_scale = accumulator = self.scales[..., 0] * input_scale
        if "no_product" in scheme.mistakes:
            accumulator = self.scales[..., 0] * images_scale
        unscaled = "bias_unscaled" in scheme.mistakes
        bias_scale = torch.ones_like(accumulator) if unscaled else accumulator
        if "bias_scale" in scheme.mistakes:
            bias_scale = qmax(32) / bias_scale
        assert layer.bias is not None
        self.bias = layer.bias.detach().double().view_as(accumulator) * bias_scale
        if scheme.bias == "int32":
            self.bias = to_integers(self.bias, 1, 32)
        self.products = layer
        layer.weight, layer.bias = nn.Parameter(weight, requires_grad=False), None
        self.factor = None
        if bits:
            last, scale = qmax(bits), symmetric_scale(largest, f"the outputs of {name}", bits)
            if "255_for_127" in scheme.mistakes:
                scale *= (2 * last + 1) / last
            if "activation_scale" in scheme.mistakes:
                scale = last**2 / scale
            self.factor = scale / accumulator
        assert scheme.activation_bits is not None
        sums = weight.flatten(1).abs().sum(dim=1) * (qmax(scheme.activation_bits) + 1)
        self.accumulator_bound = math.ceil((sums + self.bias.flatten().abs()).max().item())
        if self.accumulator_bound > qmax(32):
            raise UserError(
                f"{name} could add up to {self.accumulator_bound:.3g}, more than an int32 holds: "
                "its biases are too large for its weights; train the network differently"
            )

    @property
    def passed_scale(self) -> float:
        """Return the scale of the outputs, `accumulator_scale` · `factor`; 1 for float outputs."""
        return 1.0 if self.factor is None else float((self.accumulator_scale * self.factor)[0])

    def accumulate(self, inputs: Tensor) -> Tensor:
        """Return the sums of products and bias, float64 [n, outputs, …], exact up to 2^53.

        Some convolution algorithms (Winograd, FFT) have intermediate values that are no integers.
        Rounding removes their error, which is far below 1/2.
        """
        sums: Tensor = self.products(inputs).round_()
        return sums + self.bias

    def forward(self, inputs: Tensor) -> Tensor:
        accumulator = self.accumulate(inputs)
        if self.factor is None or self.bits is None:
            return accumulator / self.accumulator_scale
        return to_integers(accumulator, self.factor, self.bits)


@torch.no_grad()
def quantize(network: nn.Sequential, scheme: Scheme, calibration: Calibration) -> nn.Sequential:
    """Return a quantized copy of `network`.

    Its first module, `quantize`, rounds the images, and a `QuantizedLayer` replaces each layer with
    weights. If `scheme.activation_bits` is None, only weights w change, to round(scale · w) /
    scale. UserError if all values of a tensor are zero, or if a sum could exceed int32.
    """
    copied = copy.deepcopy(network).eval()
    if scheme.activation_bits is None:
        for name, layer in layers(copied).items():
            weight, scales = round_weights(name, layer, scheme)
            layer.weight.copy_(weight / scales)
        return copied
    bits, of_logits = scheme.activation_bits, None if scheme.logits == "float" else 8
    largest = {name: max(map(abs, ends)) for name, ends in calibration.items()}
    received = images = symmetric_scale(largest[IMAGES], "the calibration images", bits)
    modules = {"quantize": QuantizedImages(images, bits)} | dict(copied.named_children())
    for name, layer in layers(copied).items():
        own = of_logits if name == [*largest][-1] else bits
        quantized = QuantizedLayer(scheme, name, layer, received, images, own, largest[name])
        modules[name], received = quantized, quantized.passed_scale
    return nn.Sequential(OrderedDict(modules)).eval()
