"""Quantized copies of a float network: int8 weights alone, or integers from image to logits.

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
anyway. ReLU and max pooling work on integers unchanged, as they only compare values. The logits are
int8 too: one positive scale for all of them leaves their order alone, save for ties.
"""

import copy
import math
from collections import OrderedDict

import torch
from torch import Tensor, nn
from torch.nn import functional

from scaling.calibration import Calibration, layers
from scaling.errors import UserError
from scaling.quantization import (
    FLOAT32_EXACT,
    INT8_MIN,
    INT32_MAX,
    symmetric_scale,
    to_int8,
    to_int32,
)


class QuantizedImages(nn.Module):
    """The network's entrance: float images to integers in [-128, 127]."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, images: Tensor) -> Tensor:
        return to_int8(images, self.scale)


def weight_scale(name: str, layer: nn.Conv2d | nn.Linear) -> float:
    """127 / max|W| of the layer called `name`."""
    return symmetric_scale(layer.weight.detach().abs().max().item(), f"the weights of {name}")


class QuantizedLayer(nn.Module):
    """A convolution or linear layer on integers, simulated in floats that hold them exactly.

    Takes and gives integer-valued float64 tensors in [-128, 127]. `weight` is int8 in the float
    layer's shape; `bias` is float64, in the accumulator's scale S, and with `integer_bias` rounded
    to int32. `products_bound` is the largest |sum of products| that any int8 input can cause,
    `accumulator_bound` the same with the bias.
    """

    weight: Tensor
    bias: Tensor

    def __init__(
        self,
        name: str,
        layer: nn.Conv2d | nn.Linear,
        *,
        input_scale: float,
        output_max_abs: float,
        integer_bias: bool,
    ) -> None:
        super().__init__()
        assert layer.bias is not None
        self.kernel_size: tuple[int, ...] | None = None
        if isinstance(layer, nn.Conv2d):
            assert (layer.stride, layer.padding, layer.groups) == ((1, 1), (0, 0), 1)
            self.kernel_size = layer.kernel_size
        self.weight_scale = weight_scale(name, layer)
        self.input_scale = input_scale
        self.accumulator_scale = self.weight_scale * input_scale
        output_scale = symmetric_scale(output_max_abs, f"the outputs of {name}")
        self.output_scale = output_scale / self.accumulator_scale

        weight = to_int8(layer.weight.detach(), self.weight_scale)
        bias = layer.bias.detach().double() * self.accumulator_scale
        if integer_bias:
            bias = to_int32(layer.bias.detach(), self.accumulator_scale).double()
        products = weight.flatten(1).abs().sum(dim=1) * -INT8_MIN
        self.products_bound = int(products.max().item())
        self.accumulator_bound = math.ceil((products + bias.abs()).max().item())
        if self.accumulator_bound > INT32_MAX:
            raise UserError(
                f"{name} could add up to {self.accumulator_bound:.3g}, more than an int32 holds: "
                "its biases are too large for its weights; train the network differently"
            )
        self.register_buffer("weight", weight.to(torch.int8))
        self.register_buffer("bias", bias)

    @property
    def passed_scale(self) -> float:
        """S · o: the accumulated scale of the integers that the layer passes on."""
        return self.accumulator_scale * self.output_scale

    @property
    def dtype(self) -> torch.dtype:
        """The dtype that holds every sum of products exactly, however it is ordered."""
        return torch.float32 if self.products_bound <= FLOAT32_EXACT else torch.float64

    def accumulate(self, inputs: Tensor) -> Tensor:
        """Sum of products plus bias, float64; the sum is exact in the dtype chosen for it.

        A convolution is done as the matrix product of its patches: the convolution libraries may
        choose Winograd's or Fourier's method, whose intermediate values are no integers.
        """
        columns = inputs.to(self.dtype)
        matrix = self.weight.flatten(1).to(self.dtype)
        if self.kernel_size is None:
            return (columns @ matrix.T).double() + self.bias
        height, width = (
            size - kernel + 1
            for size, kernel in zip(inputs.shape[-2:], self.kernel_size, strict=True)
        )
        products = matrix @ functional.unfold(columns, self.kernel_size)
        return products.double().unflatten(-1, (height, width)) + self.bias.view(-1, 1, 1)

    def forward(self, inputs: Tensor) -> Tensor:
        return to_int8(self.accumulate(inputs), self.output_scale)


def with_int8_weights(network: nn.Sequential) -> nn.Sequential:
    """A copy whose weights are int8 steps, divided by their scale again; all else stays float."""
    copied = copy.deepcopy(network)
    with torch.no_grad():
        for name, layer in layers(copied).items():
            scale = weight_scale(name, layer)
            layer.weight.copy_(to_int8(layer.weight, scale) / scale)
    return copied


def with_integers(
    network: nn.Sequential, calibration: Calibration, *, integer_bias: bool
) -> nn.Sequential:
    """A copy that computes on integers from the image to the logits.

    `calibration` holds the float network's ranges. Biases are int32, or with `integer_bias` false
    floats in the accumulator's scale. Raises UserError when a tensor has no scale (all zero), or an
    accumulator could leave int32.
    """
    scale = symmetric_scale(calibration.images.max_abs, "the calibration images")
    modules = OrderedDict[str, nn.Module](quantize=QuantizedImages(scale))
    for name, module in network.named_children():
        if isinstance(module, nn.Conv2d | nn.Linear):
            quantized = QuantizedLayer(
                name,
                module,
                input_scale=scale,
                output_max_abs=calibration.outputs[name].max_abs,
                integer_bias=integer_bias,
            )
            modules[name] = quantized
            scale = quantized.passed_scale
        else:
            modules[name] = copy.deepcopy(module)
    return nn.Sequential(modules).eval()
