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
anyway. ReLU and max pooling work on integers unchanged, as they only compare values. The logits are
int8 too: one positive scale for all of them leaves their order alone, save for ties; or they are
the last accumulator divided by its S. Fewer bits have other levels in the places of -128 and 127,
unsigned ones 0 and 2^bits - 1. With a scale for each output channel w_s, S and o are vectors, and
S · o is one number still.
"""

import copy
import math
from collections import OrderedDict

import torch
from torch import Tensor, nn
from torch.nn import functional

from scaling.config.scheme import Scheme
from scaling.core.errors import UserError
from scaling.quantization.calibration import IMAGES, Calibration, Layer, observer_points
from scaling.quantization.integers import (
    INT8,
    INT32_MAX,
    LayerScales,
    Levels,
    Requantization,
    activation_levels,
    along_channels,
    output_factor,
    symmetric_scale,
    to_int32,
    to_levels,
)
from scaling.quantization.integers import bias_scale as layer_bias_scale
from scaling.quantization.rounding import LayerInputs, RoundedLayer, round_layer


class QuantizedImages(nn.Module):
    """The network's input: float images to integers in `levels`."""

    def __init__(self, scale: float, levels: Levels = INT8) -> None:
        super().__init__()
        self.scale = scale
        self.levels = levels

    def forward(self, images: Tensor) -> Tensor:
        return to_levels(images, self.scale, self.levels)


class QuantizedLayer(nn.Module):
    """A convolution or linear layer on integers, simulated in floats that hold them exactly.

    Takes integer-valued float64 tensors in `input_levels` and gives such in `levels`, or with
    `levels` None the accumulator divided by its scale. `rounded.weight` is in the float layer's
    shape; `bias` is float64 [outputs], in the accumulator's scale S, and with `integer_bias`
    rounded to int32. `products_bound` is the largest |sum of products| that any integer input can
    cause, `accumulator_bound` the same with the bias.
    """

    def __init__(
        self,
        name: str,
        layer: Layer,
        rounded: RoundedLayer,
        *,
        scales: LayerScales,
        input_levels: Levels,
        levels: Levels | None,
        output_factor: Tensor | None,
        bias_scale: Tensor,
        integer_bias: bool,
    ) -> None:
        super().__init__()
        self.rounded = rounded
        self.weight = rounded.weight
        self.scales = scales
        self.input_levels = input_levels
        self.levels = levels
        self.integer_bias = integer_bias
        self.convolution: tuple[int, int] | None = None
        if isinstance(layer, nn.Conv2d):
            assert layer.groups == 1 and layer.dilation == (1, 1)
            assert not isinstance(layer.padding, str)
            (stride, across), (padding, beside) = layer.stride, layer.padding
            assert stride == across and padding == beside
            self.convolution = (stride, padding)
        self.requantization: Requantization | None = None
        if output_factor is not None:
            self.requantization = Requantization.nearest(output_factor, name)
        self.bias_scale = bias_scale
        self.bias = rounded.bias * bias_scale
        if integer_bias:
            self.bias = to_int32(rounded.bias, bias_scale).double()
        products = self.weight.double().flatten(1).abs().sum(dim=1) * input_levels.amax
        self.products_bound = int(products.max().item())
        self.accumulator_bound = math.ceil((products + self.bias.abs()).max().item())
        if self.accumulator_bound > INT32_MAX:
            raise UserError(
                f"{name} could add up to {self.accumulator_bound:.3g}, more than an int32 holds: "
                "its biases are too large for its weights; train the network differently"
            )

    @property
    def accumulator_scale(self) -> Tensor:
        """S of each output, float64 [outputs]."""
        return self.scales.accumulator

    @property
    def passed_scale(self) -> float:
        """S · o: the accumulated scale of the integers that the layer passes on, 1 for floats."""
        if self.requantization is None:
            return 1.0
        return float((self.accumulator_scale * self.requantization.factor)[0])

    def accumulate(self, inputs: Tensor) -> Tensor:
        """Add up products and bias: float64 [n, outputs, …], exact up to 2^53.

        A float32 would do as long as `products_bound` is at most 2^24. A convolution library may
        choose Winograd's or Fourier's method, whose intermediate values are no integers; in float64
        they are off by far less than the half that rounding takes away.
        """
        columns, weight = inputs.double(), self.weight.double()
        if self.convolution is None:
            return (columns @ weight.T).add_(self.bias)
        stride, padding = self.convolution
        products = functional.conv2d(columns, weight, stride=stride, padding=padding).round_()
        return products.add_(along_channels(self.bias, products))

    def finish(self, accumulator: Tensor) -> Tensor:
        """Requantize the accumulator, or divide it by its scale; float64."""
        if self.requantization is None or self.levels is None:
            return accumulator / along_channels(self.accumulator_scale, accumulator)
        return self.requantization.in_float64(accumulator, self.levels)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.finish(self.accumulate(inputs))


def with_quantized_weights(
    network: nn.Sequential, scheme: Scheme, inputs: LayerInputs | None = None
) -> tuple[nn.Sequential, dict[str, RoundedLayer]]:
    """Copy `network` with weights rounded to integers and divided by their scale again.

    Activations stay float. Returns the rounded layers too, by name. `inputs` as in `with_integers`.
    """
    copied, found = copy.deepcopy(network), {}
    inputs = inputs or LayerInputs()
    with torch.no_grad():
        for (name, module), layer in zip(network.named_children(), copied, strict=True):
            if isinstance(layer, Layer):
                found[name] = round_layer(name, layer, scheme, inputs.moments(layer))
                assert layer.bias is not None
                layer.weight.copy_(found[name].float_weight)
                layer.bias.copy_(found[name].bias)
            inputs.advance(module, layer)
    return copied, found


def with_integers(
    network: nn.Sequential,
    calibration: Calibration,
    scheme: Scheme,
    inputs: LayerInputs | None = None,
) -> nn.Sequential:
    """Copy `network` so that it computes on integers from the image to the logits.

    `calibration` holds the float network's ranges, with magnitudes where the scheme clips.
    `inputs`, not advanced through any module yet, are needed where `scheme.needs_moments`. Raises
    UserError when a tensor has no scale (all zero), or an accumulator could leave int32.
    """
    assert scheme.activation_bits is not None
    rectified = observer_points(network, after="relu")
    levels = activation_levels(scheme.activation_bits)

    def threshold(name: str, levels: Levels) -> float:
        found = calibration.threshold(name, scheme.activation_range, levels.high)
        of = "the calibration images" if name == IMAGES else f"the outputs of {name}"
        return levels.high / symmetric_scale(found, of, levels.high)

    images = scale = levels.high / threshold(IMAGES, levels)
    modules = OrderedDict[str, nn.Module](quantize=QuantizedImages(images, levels))
    inputs = inputs or LayerInputs()
    inputs.advance(nn.Identity(), modules["quantize"])
    final = list(rectified)[-1]
    for name, module in network.named_children():
        if isinstance(module, Layer):
            rounded = round_layer(name, module, scheme, inputs.moments(module, scale))
            scales = LayerScales(rounded.scales, scale, images)
            unsigned = scheme.unsigned and rectified[name] != name
            after: Levels | None = activation_levels(scheme.activation_bits, unsigned)
            if name == final:
                after = INT8 if scheme.logits == "int8" else None
            factor = None
            if after is not None:
                reached = threshold(name, after)
                factor = output_factor(scales, reached, after, scheme.mistake)
            modules[name] = quantized = QuantizedLayer(
                name,
                module,
                rounded,
                scales=scales,
                input_levels=levels,
                levels=after,
                output_factor=factor,
                bias_scale=layer_bias_scale(scales, scheme.mistake),
                integer_bias=scheme.bias == "int32",
            )
            if after is not None:
                scale, levels = quantized.passed_scale, after
        else:
            modules[name] = copy.deepcopy(module)
        inputs.advance(module, modules[name])
    return nn.Sequential(modules).eval()
