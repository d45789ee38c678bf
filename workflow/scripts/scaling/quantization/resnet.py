"""ResNet-18 on integers, from the image to the logits: simulated in floats, or in integers alone.

In evaluation a batch norm is a factor and a shift for each channel, γ / √(σ² + ε) and β - μ times
that factor, so it becomes part of the weights and biases of the convolution before it (Jacob et al.
2018, section 3.2). Nothing of the function changes but the rounding of float32.

Layers are those of the tutorial CNN (`network`). What is new is the addition of two branches. Each
has a scale of its own, so both are first brought to one: to 16-bit integers at

    C = 32767 / max(|conv2|, |shortcut|),

the maximum calibrated over both branches, by the same requantization as everywhere: a factor
m / 2^n for a convolution's int32 accumulator, and one for the int8 input where the shortcut is the
input itself. Then they are added, which 17 bits hold, and the sum is requantized to int8 at the
scale of what the block passes on after its ReLU. The mean over all positions is a sum in int32,
whose division is part of its requantization factor.

The computation is written once, for floats that hold integers exactly (`Simulation`) and for
integer dtypes alone (`Integers`). That both give the same logits is measured on each run.
"""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from scaling.config.scheme import Scheme
from scaling.core.errors import UserError
from scaling.models.resnet import BasicBlock, ResNet18
from scaling.quantization import integer_inference
from scaling.quantization.calibration import IMAGES, Layer, Range, observe_network
from scaling.quantization.integers import (
    INT8,
    LayerScales,
    Levels,
    Requantization,
    activation_levels,
    symmetric_scale,
)
from scaling.quantization.network import QuantizedImages, QuantizedLayer
from scaling.quantization.rounding import round_layer

BRANCH = Levels(-(2**15), 2**15 - 1)
"""What the two branches of a block are brought to before they are added."""
POSITIONS = 4 * 4
"""Of the last stage for 32×32 images, over which the mean is taken."""


def blocks_of(network: ResNet18) -> dict[str, BasicBlock]:
    """List the eight blocks by the names that records have for them."""
    blocks = [block for stage in network.stages for block in stage.children()]
    return {f"blocks.{i}": each for i, each in enumerate(blocks) if isinstance(each, BasicBlock)}


@torch.no_grad()
def fold(network: ResNet18) -> ResNet18:
    """Copy `network` with each batch norm folded into its convolution: the same in evaluation."""
    folded = copy.deepcopy(network)
    pairs: list[tuple[nn.Module, str, str]] = [(folded.stem, "0", "1")]
    for block in blocks_of(folded).values():
        pairs += [(block, "conv1", "bn1"), (block, "conv2", "bn2")]
        pairs += [(block.shortcut, "0", "1")] if len(block.shortcut) else []
    for module, conv, norm in pairs:
        before = module.get_submodule(conv), module.get_submodule(norm)
        assert isinstance(before[0], nn.Conv2d) and isinstance(before[1], nn.BatchNorm2d)
        setattr(module, conv, fuse_conv_bn_eval(before[0], before[1]))
        setattr(module, norm, nn.Identity())
    return folded.eval()


def folded_layers(network: ResNet18) -> dict[str, Layer]:
    """List the layers with weights of a folded network, by the names that records have for them."""
    found: dict[str, nn.Module] = {"stem": network.stem[0]}
    for name, block in blocks_of(network).items():
        found |= {f"{name}.conv1": block.conv1, f"{name}.conv2": block.conv2}
        if len(block.shortcut):
            found[f"{name}.shortcut"] = block.shortcut[0]
    found["fc"] = network.head[2]
    return {name: layer for name, layer in found.items() if isinstance(layer, Layer)}


def activation_ranges(network: ResNet18, batches: Iterable[Tensor]) -> dict[str, Range]:
    """Observe the ranges of a folded network on all `batches` [n, 3, 32, 32].

    Those of the `IMAGES`, of what the stem, each `conv1` and each block pass on after their ReLU,
    and of what each `conv2`, `shortcut`, the pooling and the last layer give.
    """
    modules: dict[str, nn.Module] = {"stem": network.stem}
    for name, block in blocks_of(network).items():
        modules |= {f"{name}.{each}": block.get_submodule(each) for each in ("conv1", "conv2")}
        modules |= {f"{name}.shortcut": block.shortcut, name: block}
    modules |= {"pool": network.head[0], "fc": network.head[2]}
    found = {name: Range() for name in (IMAGES, *modules)}

    def observe(name: str, values: Tensor) -> None:
        found[name].update(values.clamp(min=0) if name.endswith("conv1") else values)

    observe_network(network, batches, modules, observe)
    return found


class Simulation:
    """Integers held by float64."""

    def layer(self, layer: QuantizedLayer, inputs: Tensor) -> Tensor:
        """Compute the layer's output for integer `inputs`."""
        return layer(inputs)

    def requantize(self, rule: Requantization, values: Tensor, levels: Levels) -> Tensor:
        """Multiply `values` by the rule's factor, round and clamp to `levels`."""
        return rule.in_float64(values, levels)


class Integers(Simulation):
    """The same in integer dtypes alone, on the CPU."""

    def layer(self, layer: QuantizedLayer, inputs: Tensor) -> Tensor:
        return integer_inference.finish(layer, integer_inference.accumulate(layer, inputs))

    def requantize(self, rule: Requantization, values: Tensor, levels: Levels) -> Tensor:
        return rule.cpu().in_integers(values, levels).to(torch.int32)


class QuantizedBlock(nn.Module):
    """A block: `conv1` gives int8, `conv2` and the shortcut give `BRANCH` integers of one scale.

    The shortcut is a layer, or the requantization of the block's input; `total` is that of the sum,
    to `levels`.
    """

    def __init__(
        self,
        conv1: QuantizedLayer,
        conv2: QuantizedLayer,
        shortcut: QuantizedLayer | Requantization,
        total: Requantization,
        levels: Levels,
    ) -> None:
        super().__init__()
        self.conv1, self.conv2, self.shortcut = conv1, conv2, shortcut
        self.total, self.levels = total, levels

    def compute(self, values: Tensor, arithmetic: Simulation) -> Tensor:
        """Compute the block's output for integer `values`."""
        branch = arithmetic.layer(self.conv2, arithmetic.layer(self.conv1, values).clamp(min=0))
        if isinstance(self.shortcut, QuantizedLayer):
            beside = arithmetic.layer(self.shortcut, values)
        else:
            beside = arithmetic.requantize(self.shortcut, values, BRANCH)
        return arithmetic.requantize(self.total, branch + beside, self.levels).clamp(min=0)


class QuantizedResNet(nn.Module):
    """Images [n, 3, 32, 32] to logits, all on integers; called, it is the simulation."""

    def __init__(
        self,
        entrance: QuantizedImages,
        stem: QuantizedLayer,
        blocks: Iterable[QuantizedBlock],
        mean: Requantization,
        fc: QuantizedLayer,
    ) -> None:
        super().__init__()
        self.entrance, self.stem, self.blocks = entrance, stem, nn.ModuleList(blocks)
        self.mean, self.fc = mean, fc

    def compute(self, entered: Tensor, arithmetic: Simulation) -> Tensor:
        """Compute the last layer's output for integer images `entered`."""
        values = arithmetic.layer(self.stem, entered).clamp(min=0)
        for block in self.blocks:
            assert isinstance(block, QuantizedBlock)
            values = block.compute(values, arithmetic)
        positions = values.flatten(2)
        assert positions.shape[2] == POSITIONS
        pooled = arithmetic.requantize(self.mean, positions.sum(dim=2), self.entrance.levels)
        return arithmetic.layer(self.fc, pooled)

    def forward(self, images: Tensor) -> Tensor:
        return self.compute(self.entrance(images), Simulation())

    def in_integers(self, images: Tensor) -> Tensor:
        """Compute what `forward` gives in integer dtypes on the CPU."""
        entered = self.entrance(images).cpu().to(torch.int32)
        found = self.compute(entered, Integers())
        if self.fc.levels is None:
            return found.double() / self.fc.accumulator_scale.cpu()
        return found


@torch.no_grad()
def with_quantized_weights(network: ResNet18, scheme: Scheme) -> ResNet18:
    """Copy a folded network with weights rounded to integers and divided by their scale again."""
    copied = copy.deepcopy(network)
    for name, layer in folded_layers(copied).items():
        layer.weight.copy_(round_layer(name, layer, scheme).float_weight)
    return copied


def with_integers(
    network: ResNet18, ranges: Mapping[str, Range], scheme: Scheme
) -> QuantizedResNet:
    """Copy a folded network so that it computes on integers as `scheme` says.

    `ranges` are those of `activation_ranges`. Raises UserError for a scheme that needs more than
    ranges, when a tensor has no scale (all zero), and when an accumulator could leave int32.
    """
    for option in ("unsigned", "activation_range", "rounding", "bias_correction", "mistake"):
        if getattr(scheme, option) != getattr(Scheme(), option):
            raise UserError(
                f"ResNet-18 is not quantized with {option} {getattr(scheme, option)}; leave "
                f"{option} as it is by default"
            )
    assert scheme.activation_bits is not None
    return _Builder(network, ranges, scheme, activation_levels(scheme.activation_bits)).build()


@dataclass(frozen=True)
class _Builder:
    """Follows the network with the accumulated scale A of what each layer receives."""

    network: ResNet18
    ranges: Mapping[str, Range]
    scheme: Scheme
    levels: Levels

    def scale_of(self, name: str, levels: Levels | None = None) -> float:
        """Return the scale that takes the largest magnitude seen at `name` to the last level."""
        qmax = (levels or self.levels).high
        return symmetric_scale(self.ranges[name].max_abs, f"the outputs of {name}", qmax)

    def layer(
        self, name: str, input_scale: float, output_scale: float | None, levels: Levels | None
    ) -> QuantizedLayer:
        """Quantize the layer `name` for inputs of `input_scale` and outputs of `output_scale`."""
        layer = folded_layers(self.network)[name]
        rounded = round_layer(name, layer, self.scheme)
        scales = LayerScales(rounded.scales, input_scale, input_scale)
        return QuantizedLayer(
            name,
            layer,
            rounded,
            scales=scales,
            input_levels=self.levels,
            levels=levels,
            output_factor=None if output_scale is None else output_scale / scales.accumulator,
            bias_scale=scales.accumulator,
            integer_bias=self.scheme.bias == "int32",
        )

    def factor(self, factor: float, of: str) -> Requantization:
        """Make one requantization for all channels."""
        device = next(self.network.parameters()).device
        return Requantization.nearest(
            torch.tensor([factor], dtype=torch.float64, device=device), of
        )

    def block(self, name: str, block: BasicBlock, input_scale: float) -> QuantizedBlock:
        """Quantize the block `name` for inputs of `input_scale`."""
        within = self.scale_of(f"{name}.conv1")
        amax = max(self.ranges[f"{name}.{each}"].max_abs for each in ("conv2", "shortcut"))
        common = symmetric_scale(amax, f"the branches of {name}", BRANCH.high)
        shortcut: QuantizedLayer | Requantization
        if len(block.shortcut):
            shortcut = self.layer(f"{name}.shortcut", input_scale, common, BRANCH)
        else:
            shortcut = self.factor(common / input_scale, f"{name}.shortcut")
        return QuantizedBlock(
            self.layer(f"{name}.conv1", input_scale, within, self.levels),
            self.layer(f"{name}.conv2", within, common, BRANCH),
            shortcut,
            self.factor(self.scale_of(name) / common, name),
            self.levels,
        )

    def build(self) -> QuantizedResNet:
        """Quantize all layers in the order of the computation."""
        images, scale, pooled = (self.scale_of(name) for name in (IMAGES, "stem", "pool"))
        stem = self.layer("stem", images, scale, self.levels)
        blocks = []
        for name, block in blocks_of(self.network).items():
            blocks.append(self.block(name, block, scale))
            scale = self.scale_of(name)
        logits = None if self.scheme.logits == "float" else INT8
        last = None if logits is None else self.scale_of("fc", logits)
        fc = self.layer("fc", pooled, last, logits)
        mean = self.factor(pooled / (scale * POSITIONS), "pool")
        return QuantizedResNet(QuantizedImages(images, self.levels), stem, blocks, mean, fc).eval()
