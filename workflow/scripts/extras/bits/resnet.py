"""ResNet-18 on integers, from the image to the logits.

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
"""

import copy
from collections import OrderedDict
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from scaling.config.scheme import Scheme
from scaling.core.errors import UserError
from scaling.models.resnet import BasicBlock, ResNet18
from scaling.quantization.calibration import Calibration, Layer, Points
from scaling.quantization.integers import Levels, Requantization, symmetric_scale
from scaling.quantization.network import Builder, QuantizedLayer
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
        # What conv1 passes on is observed behind its ReLU, which is no module of the block.
        setattr(module, norm, nn.ReLU() if norm == "bn1" else nn.Identity())
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


def observer_points(network: ResNet18) -> Points:
    """Map what is calibrated of a folded network to the module that gives it.

    What the stem, each `conv1` and each block pass on after their ReLU, and what each `conv2`,
    `shortcut`, the pooling and the last layer give.
    """
    own = {"conv1": "bn1", "conv2": "conv2", "shortcut": "shortcut"}
    points = {"stem": "stem", "pool": "head.0", "fc": "head.2"}
    paths = {id(module): path for path, module in network.named_modules()}
    for name, block in blocks_of(network).items():
        path = points[name] = paths[id(block)]
        points |= {f"{name}.{each}": f"{path}.{module}" for each, module in own.items()}
    return points


class QuantizedBlock(nn.Module):
    """A block: `conv1` gives int8, `conv2` and the shortcut give wider integers of one scale.

    The shortcut is a layer, or the requantization of the block's input; `total` is that of the sum.
    """

    def __init__(
        self,
        conv1: QuantizedLayer,
        conv2: QuantizedLayer,
        shortcut: QuantizedLayer | Requantization,
        total: Requantization,
    ) -> None:
        super().__init__()
        self.conv1, self.conv2, self.shortcut, self.total = conv1, conv2, shortcut, total

    def forward(self, values: Tensor) -> Tensor:
        branch = self.conv2(self.conv1(values).clamp(min=0))
        if not branch.is_floating_point():
            branch = branch.int()
        return self.total(branch + self.shortcut(values)).clamp(min=0)


class QuantizedMean(nn.Module):
    """The mean over all positions of a channel."""

    def __init__(self, mean: Requantization) -> None:
        super().__init__()
        self.mean = mean

    def forward(self, values: Tensor) -> Tensor:
        positions = values.flatten(2)
        assert positions.shape[2] == POSITIONS
        return self.mean(positions.sum(dim=2))


def quantize(
    network: ResNet18, scheme: Scheme, calibration: Calibration, branch: Levels = BRANCH
) -> nn.Module:
    """Copy a folded network so that it computes on integers as `scheme` says, branches as `branch`.

    Without `scheme.activation_bits` activations stay floats, and weights are rounded to integers
    and divided by their scale again. `calibration` has the ranges at `observer_points`. Raises
    UserError for a scheme that needs more than ranges, when a tensor has no scale (all zero), and
    when an accumulator could leave int32.
    """
    for option in ("activation_range", "rounding", "bias_correction", "mistakes"):
        if (asked := getattr(scheme, option)) != getattr(Scheme(), option):
            raise UserError(
                f"ResNet-18 is not quantized with {option} {asked}; leave {option} as it is by "
                "default"
            )
    if scheme.activation_bits is not None:
        return _Builder(scheme, calibration, network, branch).network_of_integers()
    copied = copy.deepcopy(network)
    for name, layer in folded_layers(copied).items():
        round_layer(name, layer, scheme).assign_to(layer)
    return copied


@dataclass(frozen=True)
class _Builder(Builder):
    """Follows the network with the accumulated scale A of what each layer receives."""

    network: ResNet18
    branch: Levels

    @property
    def passed(self) -> Levels:
        """The levels of what passes a ReLU, and of its mean."""
        return self.levels(self.scheme.unsigned)

    def named(
        self, name: str, input_scale: float, levels: Levels | None, scale: float | None = None
    ) -> QuantizedLayer:
        """Quantize the layer `name` for inputs of `input_scale` and outputs of `scale`."""
        layer = folded_layers(self.network)[name]
        rounded = round_layer(name, layer, self.scheme)
        received = self.levels() if name == "stem" else self.passed
        return self.layer(name, layer, rounded, input_scale, received, levels, scale)

    def factor(self, factor: float, levels: Levels, of: str) -> Requantization:
        """Make one requantization for all channels."""
        device = next(self.network.parameters()).device
        factors = torch.tensor([factor], dtype=torch.float64, device=device)
        return Requantization.nearest(factors, levels, of)

    def block(self, name: str, block: BasicBlock, input_scale: float) -> QuantizedBlock:
        """Quantize the block `name` for inputs of `input_scale`."""
        levels, ranges = self.passed, self.calibration.ranges
        amax = max(ranges[f"{name}.{each}"].max_abs for each in ("conv2", "shortcut"))
        common = symmetric_scale(amax, f"the branches of {name}", self.branch.high)
        shortcut: QuantizedLayer | Requantization
        if len(block.shortcut):
            shortcut = self.named(f"{name}.shortcut", input_scale, self.branch, common)
        else:
            shortcut = self.factor(common / input_scale, self.branch, f"{name}.shortcut")
        return QuantizedBlock(
            self.named(f"{name}.conv1", input_scale, levels),
            self.named(f"{name}.conv2", self.scale(f"{name}.conv1", levels), self.branch, common),
            shortcut,
            self.factor(self.scale(name, levels) / common, levels, name),
        )

    def network_of_integers(self) -> nn.Sequential:
        """Quantize all layers in the order of the computation."""
        levels, entrance = self.passed, self.images()
        stem = self.named("stem", entrance.scale, levels)
        modules = OrderedDict[str, nn.Module](quantize=entrance, stem=stem, relu=nn.ReLU())
        scale = self.scale("stem", levels)
        for name, block in blocks_of(self.network).items():
            modules[name.replace(".", "_")] = self.block(name, block, scale)
            scale = self.scale(name, levels)
        pooled = self.scale("pool", levels)
        modules["pool"] = QuantizedMean(self.factor(pooled / (scale * POSITIONS), levels, "pool"))
        modules["fc"] = self.named("fc", pooled, self.logits)
        return nn.Sequential(modules).eval()
