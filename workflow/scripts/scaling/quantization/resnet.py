"""ResNet-18 on integers, from the image to the logits: simulated in floats, or in integers alone.

Layers are those of the tutorial CNN (`quantized_inference`). What is new is the meeting of two
branches. Each has a scale of its own, so both are first brought to one: to 16-bit integers at

    C = 32767 / max(|conv2|, |shortcut|),

the maximum calibrated over both branches, by the same requantization as everywhere: a factor
m / 2^n for a convolution's int32 accumulator, and one for the int8 input where the shortcut is the
input itself. Then they are added, which 17 bits hold, and the sum is requantized to int8 at the
scale of what the block passes on after its ReLU. The mean over all positions is a sum in int32,
whose division is part of its requantization factor.

The computation is written once, over an `Arithmetic`: floats that hold integers exactly, or integer
dtypes and nothing else. That both give the same logits is measured on each run.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from scaling.config.scheme import Scheme
from scaling.core.errors import UserError
from scaling.quantization import integer_inference
from scaling.quantization.calibration import IMAGES, Range
from scaling.quantization.folded_resnet import FoldedBlock, FoldedResNet, folded_layers
from scaling.quantization.integers import Requantization, Steps, activation_steps, symmetric_scale
from scaling.quantization.mistakes import LayerScales
from scaling.quantization.network import QuantizedImages, QuantizedLayer
from scaling.quantization.rounding import round_layer

BRANCH = Steps(-(2**15), 2**15 - 1)
"""What the two branches of a block are brought to before they are added."""
POSITIONS = 4 * 4
"""Of the last stage for 32×32 images, over which the mean is taken."""


class Arithmetic(Protocol):
    """How a layer and a requantization are computed."""

    def layer(self, layer: QuantizedLayer, inputs: Tensor) -> Tensor:
        """The layer's output for integer `inputs`."""

    def requantize(self, rule: Requantization, values: Tensor, steps: Steps) -> Tensor:
        """`values` times the rule's factor, rounded and clamped to `steps`."""


class Simulation:
    """Integers held by float64."""

    def layer(self, layer: QuantizedLayer, inputs: Tensor) -> Tensor:
        return layer(inputs)

    def requantize(self, rule: Requantization, values: Tensor, steps: Steps) -> Tensor:
        return rule.in_float64(values, steps)


class Integers:
    """Integer dtypes alone, on the CPU."""

    def layer(self, layer: QuantizedLayer, inputs: Tensor) -> Tensor:
        return integer_inference.finish(layer, integer_inference.accumulate(layer, inputs))

    def requantize(self, rule: Requantization, values: Tensor, steps: Steps) -> Tensor:
        return rule.cpu().in_integers(values, steps).to(torch.int32)


class QuantizedBlock(nn.Module):
    """A block: `conv1` gives int8, `conv2` and the shortcut give `BRANCH` integers of one scale.

    The shortcut is a layer, or the requantization of the block's input; `total` is that of the sum.
    """

    def __init__(
        self,
        conv1: QuantizedLayer,
        conv2: QuantizedLayer,
        shortcut: QuantizedLayer | Requantization,
        total: Requantization,
        steps: Steps,
    ) -> None:
        super().__init__()
        self.conv1, self.conv2, self.shortcut = conv1, conv2, shortcut
        self.total, self.steps = total, steps

    def compute(self, values: Tensor, arithmetic: Arithmetic) -> Tensor:
        """The block's output for integer `values`."""
        branch = arithmetic.layer(self.conv2, arithmetic.layer(self.conv1, values).clamp(min=0))
        if isinstance(self.shortcut, QuantizedLayer):
            beside = arithmetic.layer(self.shortcut, values)
        else:
            beside = arithmetic.requantize(self.shortcut, values, BRANCH)
        return arithmetic.requantize(self.total, branch + beside, self.steps).clamp(min=0)


class QuantizedResNet(nn.Module):
    """Images [n, 3, 32, 32] to logits, all on integers; called, it is the simulation."""

    def __init__(
        self,
        entrance: QuantizedImages,
        stem: QuantizedLayer,
        blocks: list[QuantizedBlock],
        mean: Requantization,
        fc: QuantizedLayer,
    ) -> None:
        super().__init__()
        self.entrance, self.stem, self.blocks = entrance, stem, nn.ModuleList(blocks)
        self.mean, self.fc = mean, fc

    def compute(self, entered: Tensor, arithmetic: Arithmetic) -> Tensor:
        """The last layer's output for integer images `entered`."""
        values = arithmetic.layer(self.stem, entered).clamp(min=0)
        for block in self.blocks:
            assert isinstance(block, QuantizedBlock)
            values = block.compute(values, arithmetic)
        positions = values.flatten(2)
        assert positions.shape[2] == POSITIONS
        pooled = arithmetic.requantize(self.mean, positions.sum(dim=2), self.entrance.steps)
        return arithmetic.layer(self.fc, pooled)

    def forward(self, images: Tensor) -> Tensor:
        return self.compute(self.entrance(images), Simulation())

    def in_integers(self, images: Tensor) -> Tensor:
        """What `forward` gives, computed in integer dtypes on the CPU."""
        entered = self.entrance(images).cpu().to(torch.int32)
        found = self.compute(entered, Integers())
        if self.fc.steps is None:
            return found.double() / self.fc.accumulator_scale.cpu()
        return found


def with_quantized_weights(network: FoldedResNet, scheme: Scheme) -> FoldedResNet:
    """A copy whose weights are integer steps, divided by their scale again; all else is float."""
    copied = copy.deepcopy(network)
    with torch.no_grad():
        for name, layer in folded_layers(copied).items():
            layer.weight.copy_(round_layer(name, layer, scheme).float_weight)
    return copied


def with_integers(
    network: FoldedResNet, ranges: Mapping[str, Range], scheme: Scheme
) -> QuantizedResNet:
    """A copy that computes on integers as `scheme` says, its ranges those that `ranges` found.

    Raises UserError for a scheme that needs more than ranges, when a tensor has no scale (all
    zero), and when an accumulator could leave int32.
    """
    _check(scheme)
    return _Builder(network, ranges, scheme).build()


def _check(scheme: Scheme) -> None:
    unsupported = {
        "activation_bits": scheme.activation_bits is None,
        "unsigned": scheme.unsigned,
        "activation_range": scheme.activation_range != "max_abs",
        "rounding": scheme.rounding != "nearest",
        "bias_correction": scheme.bias_correction,
        "mistake": scheme.mistake is not None,
    }
    for option, refused in unsupported.items():
        if refused:
            raise UserError(
                f"ResNet-18 is not quantized with {option} {getattr(scheme, option)}; leave "
                f"{option} as it is by default"
            )


@dataclass(frozen=True)
class _Builder:
    """Follows the network with the accumulated scale A of what each layer receives."""

    network: FoldedResNet
    ranges: Mapping[str, Range]
    scheme: Scheme

    @property
    def steps(self) -> Steps:
        assert self.scheme.activation_bits is not None
        return activation_steps(self.scheme.activation_bits)

    def reach_scale(self, name: str, steps: Steps | None = None) -> float:
        """The scale that takes the largest magnitude seen at `name` to the last step."""
        last = (steps or self.steps).high
        return symmetric_scale(self.ranges[name].max_abs, f"the outputs of {name}", last)

    def layer(
        self,
        name: str,
        layer: nn.Conv2d | nn.Linear,
        input_scale: float,
        output_scale: float | None,
        steps: Steps | None,
    ) -> QuantizedLayer:
        """`layer` on inputs of `input_scale`, with outputs in `steps` of `output_scale`."""
        rounded = round_layer(name, layer, self.scheme)
        scales = LayerScales(rounded.scales, input_scale, input_scale)
        return QuantizedLayer(
            name,
            layer,
            rounded,
            scales=scales,
            input_steps=self.steps,
            steps=steps,
            output_factor=None if output_scale is None else output_scale / scales.accumulator,
            bias_scale=scales.accumulator,
            integer_bias=self.scheme.bias == "int32",
        )

    def factor(self, factor: float, of: str) -> Requantization:
        """One factor for all channels."""
        device = self.network.fc.weight.device
        return Requantization.nearest(
            torch.tensor([factor], dtype=torch.float64, device=device), of
        )

    def block(self, index: int, block: FoldedBlock, input_scale: float) -> QuantizedBlock:
        """Block number `index`, on inputs of `input_scale`."""
        name = f"blocks.{index}"
        within = self.reach_scale(f"{name}.conv1")
        reach = max(self.ranges[f"{name}.{each}"].max_abs for each in ("conv2", "shortcut"))
        common = symmetric_scale(reach, f"the branches of {name}", BRANCH.high)
        shortcut: QuantizedLayer | Requantization
        if isinstance(block.shortcut, nn.Conv2d):
            shortcut = self.layer(f"{name}.shortcut", block.shortcut, input_scale, common, BRANCH)
        else:
            shortcut = self.factor(common / input_scale, f"{name}.shortcut")
        return QuantizedBlock(
            self.layer(f"{name}.conv1", block.conv1, input_scale, within, self.steps),
            self.layer(f"{name}.conv2", block.conv2, within, common, BRANCH),
            shortcut,
            self.factor(self.reach_scale(name) / common, name),
            self.steps,
        )

    def build(self) -> QuantizedResNet:
        images = self.reach_scale(IMAGES)
        scale = self.reach_scale("stem")
        stem = self.layer("stem", self.network.stem, images, scale, self.steps)
        blocks = []
        for index, block in enumerate(self.network.blocks):
            assert isinstance(block, FoldedBlock)
            blocks.append(self.block(index, block, scale))
            scale = self.reach_scale(f"blocks.{index}")
        pooled = self.reach_scale("pool")
        logits = None if self.scheme.logits == "float" else activation_steps(8)
        fc = self.layer(
            "fc",
            self.network.fc,
            pooled,
            None if logits is None else self.reach_scale("fc", logits),
            logits,
        )
        mean = self.factor(pooled / (scale * POSITIONS), "pool")
        entrance = QuantizedImages(images, self.steps)
        return QuantizedResNet(entrance, stem, blocks, mean, fc).eval()
