"""Quantized copies of a float network: few-bit weights alone, or integers from image to logits.

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
the last accumulator divided by its S. Fewer bits have fewer steps in the places of -128 and 127,
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
from scaling.quantization import mistakes as formulas
from scaling.quantization.calibration import IMAGES, Calibration, outlets
from scaling.quantization.integers import (
    INT8,
    INT32_MAX,
    Requantization,
    Steps,
    activation_steps,
    along_channels,
    symmetric_scale,
    to_int32,
    to_steps,
)
from scaling.quantization.layer_inputs import LayerInputs
from scaling.quantization.mistakes import LayerScales
from scaling.quantization.rounding import RoundedLayer, round_layer


class QuantizedImages(nn.Module):
    """The network's entrance: float images to integers in `steps`."""

    def __init__(self, scale: float, steps: Steps = INT8) -> None:
        super().__init__()
        self.scale = scale
        self.steps = steps

    def forward(self, images: Tensor) -> Tensor:
        return to_steps(images, self.scale, self.steps)


class QuantizedLayer(nn.Module):
    """A convolution or linear layer on integers, simulated in floats that hold them exactly.

    Takes integer-valued float64 tensors in `input_steps` and gives such in `steps`, or with `steps`
    None the accumulator divided by its scale. `rounded.weight` is in the float layer's shape;
    `bias` is float64 [outputs], in the accumulator's scale S, and with `integer_bias` rounded to
    int32. `products_bound` is the largest |sum of products| that any integer input can cause,
    `accumulator_bound` the same with the bias.
    """

    def __init__(
        self,
        name: str,
        layer: nn.Conv2d | nn.Linear,
        rounded: RoundedLayer,
        *,
        scales: LayerScales,
        input_steps: Steps,
        steps: Steps | None,
        output_factor: Tensor | None,
        bias_scale: Tensor,
        integer_bias: bool,
    ) -> None:
        super().__init__()
        self.rounded = rounded
        self.weight = rounded.weight
        self.scales = scales
        self.input_steps = input_steps
        self.steps = steps
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
        products = self.weight.double().flatten(1).abs().sum(dim=1) * input_steps.largest
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
        """Sum of products plus bias: float64 [n, outputs, …], exact up to 2^53.

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
        """What the layer makes of its accumulator, as float64."""
        if self.requantization is None or self.steps is None:
            return accumulator / along_channels(self.accumulator_scale, accumulator)
        return self.requantization.in_float64(accumulator, self.steps)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.finish(self.accumulate(inputs))


def with_quantized_weights(
    network: nn.Sequential, scheme: Scheme, inputs: LayerInputs | None = None
) -> tuple[nn.Sequential, dict[str, RoundedLayer]]:
    """A copy whose weights are integer steps, divided by their scale again; activations stay float.

    Also its rounded layers, by name. `inputs` as in `with_integers`.
    """
    copied = copy.deepcopy(network)
    found = {}
    with torch.no_grad():
        for (name, module), layer in zip(network.named_children(), copied, strict=True):
            if isinstance(layer, nn.Conv2d | nn.Linear):
                moments = inputs.moments(layer) if inputs is not None else None
                found[name] = round_layer(name, layer, scheme, moments)
                assert layer.bias is not None
                layer.weight.copy_(found[name].float_weight)
                layer.bias.copy_(found[name].bias)
            if inputs is not None:
                inputs.go_through(module, layer)
    return copied, found


def with_integers(
    network: nn.Sequential,
    calibration: Calibration,
    scheme: Scheme,
    inputs: LayerInputs | None = None,
) -> nn.Sequential:
    """A copy that computes on integers from the image to the logits, as `scheme` says.

    `calibration` holds the float network's ranges, with magnitudes where the scheme clips.
    `inputs`, not gone through any module yet, are needed where `scheme.needs_moments`. Raises
    UserError when a tensor has no scale (all zero), or an accumulator could leave int32.
    """
    assert scheme.activation_bits is not None
    mistake, rectified = scheme.mistake, outlets(network)
    steps = activation_steps(scheme.activation_bits)

    def reach(name: str, steps: Steps) -> float:
        found = calibration.reach(name, scheme.activation_range, steps.high)
        of = "the calibration images" if name == IMAGES else f"the outputs of {name}"
        return steps.high / symmetric_scale(found, of, steps.high)

    images = scale = steps.high / reach(IMAGES, steps)
    modules = OrderedDict[str, nn.Module](quantize=QuantizedImages(images, steps))
    if inputs is not None:
        inputs.go_through(nn.Identity(), modules["quantize"])
    final = list(rectified)[-1]
    for name, module in network.named_children():
        if not isinstance(module, nn.Conv2d | nn.Linear):
            modules[name] = copy.deepcopy(module)
            if inputs is not None:
                inputs.go_through(module, modules[name])
            continue
        moments = inputs.moments(module, scale) if inputs is not None else None
        rounded = round_layer(name, module, scheme, moments)
        scales = LayerScales(rounded.scales, scale, images)
        after: Steps | None = activation_steps(
            scheme.activation_bits, scheme.unsigned and rectified[name] != name
        )
        factor = None
        if name == final:
            after = INT8 if scheme.logits == "int8" else None
        if after is not None:
            factor = formulas.output_factor(scales, reach(name, after), after, mistake)
        modules[name] = quantized = QuantizedLayer(
            name,
            module,
            rounded,
            scales=scales,
            input_steps=steps,
            steps=after,
            output_factor=factor,
            bias_scale=formulas.bias_scale(scales, mistake),
            integer_bias=scheme.bias == "int32",
        )
        if inputs is not None:
            inputs.go_through(module, quantized)
        if after is not None:
            scale, steps = quantized.passed_scale, after
    return nn.Sequential(modules).eval()
