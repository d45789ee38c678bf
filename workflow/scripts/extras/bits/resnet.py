"""ResNet-18 on integers, from the image to the logits.

In evaluation a batch norm is a factor and a shift for each channel, so it becomes part of the
convolution before it (Jacob et al. 2018, section 3.2). Layers are those of the tutorial CNN
(`network`). What is new is the addition of two branches. Each has a scale of its own, so both are
first requantized to one: to 16-bit integers at

    C = 32767 / max(|conv2|, |shortcut|),

the maximum calibrated over both branches. Then they are added, which 17 bits hold, and the sum is
requantized to int8 at the scale of what the block passes on after its ReLU. The mean over all
positions is a sum in int32, whose division is part of its requantization factor.
"""

import copy
from collections import OrderedDict

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from scaling.config.scheme import Scheme
from scaling.models.resnet import BasicBlock, ResNet18
from scaling.quantization.calibration import Calibration, Points, layers
from scaling.quantization.integers import Levels, Requantization, symmetric_scale
from scaling.quantization.network import Builder, QuantizedLayer
from scaling.quantization.rounding import NEAREST

BRANCH = Levels(-(2**15), 2**15 - 1)
"""What the two branches of a block are brought to before they are added."""
POSITIONS = 4 * 4
"""Of the last stage for 32×32 images, over which the mean is taken."""


class Block(nn.Module):
    """A basic block whose batch norms are folded into its convolutions."""

    def __init__(self, block: BasicBlock) -> None:
        super().__init__()
        self.conv1 = fuse_conv_bn_eval(block.conv1, block.bn1)
        self.relu = nn.ReLU()
        self.conv2 = fuse_conv_bn_eval(block.conv2, block.bn2)
        self.shortcut = _folded(block.shortcut) if len(block.shortcut) else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return (self.conv2(self.relu(self.conv1(x))) + self.shortcut(x)).relu()


def _folded(pair: nn.Sequential) -> nn.Module:
    convolution, norm, *_ = pair
    assert isinstance(convolution, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d)
    return fuse_conv_bn_eval(convolution, norm)


@torch.no_grad()
def fold(network: ResNet18) -> nn.Sequential:
    """Copy `network` with each batch norm folded into its convolution: the same in evaluation."""
    network = copy.deepcopy(network).eval()
    blocks = [one for stage in network.stages for one in stage.children()]
    parts = {
        "stem": _folded(network.stem),
        "relu": nn.ReLU(),
        "blocks": nn.Sequential(*(Block(one) for one in blocks if isinstance(one, BasicBlock))),
    }
    parts |= zip(("pool", "flatten", "fc"), network.head.children(), strict=True)
    return nn.Sequential(OrderedDict(parts)).eval()


def observer_points(folded: nn.Sequential) -> Points:
    """Map what is calibrated of a folded network, behind each ReLU, to the module that gives it."""
    points = {"stem": "relu", "pool": "pool", "fc": "fc"}
    for index, _ in folded.get_submodule("blocks").named_children():
        name = f"blocks.{index}"
        points |= {name: name, f"{name}.conv1": f"{name}.relu"}
        points |= {part: part for part in (f"{name}.conv2", f"{name}.shortcut")}
    return points


class QuantizedBlock(nn.Module):
    """A block: `conv2` and the shortcut give wider integers of one scale, `total` requantizes."""

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
    folded: nn.Sequential, scheme: Scheme, calibration: Calibration, branch: Levels = BRANCH
) -> nn.Sequential:
    """Copy a folded network so that it computes on integers as `scheme` says, branches as `branch`.

    Without `scheme.activation_bits` activations stay floats, and weights are rounded to integers
    and divided by their scale again. `calibration` has the ranges at `observer_points`. Raises
    UserError when a tensor has no scale (all zero), and when an accumulator could leave int32.
    """
    assert scheme.rounding == "nearest" and not scheme.mistakes
    if scheme.activation_bits is not None:
        return _integers(folded, Builder(scheme, calibration), branch)
    copied = copy.deepcopy(folded)
    for name, layer in layers(copied).items():
        NEAREST.round(name, layer, scheme).assign_to(layer)
    return copied


def _integers(folded: nn.Sequential, builder: Builder, branch: Levels) -> nn.Sequential:
    """Quantize all layers in the order of the computation, with the scale that each receives."""
    parts, device = layers(folded), next(folded.parameters()).device
    # Of what passes a ReLU, and of its mean.
    levels = builder.levels(builder.scheme.unsigned)

    def factor(factor: float, levels: Levels, of: str) -> Requantization:
        factors = torch.tensor([factor], dtype=torch.float64, device=device)
        return Requantization.nearest(factors, levels, of)

    def block(name: str, received: float) -> QuantizedBlock:
        ends = (builder.calibration[f"{name}.{each}"] for each in ("conv2", "shortcut"))
        amax = max(seen.max_abs for seen in ends)
        common = symmetric_scale(amax, f"the branches of {name}", branch.high)
        conv1, conv2, shortcut = (f"{name}.{part}" for part in ("conv1", "conv2", "shortcut"))
        inner = builder.scale(conv1, levels)
        return QuantizedBlock(
            builder.layer(conv1, parts[conv1], received, levels, levels),
            builder.layer(conv2, parts[conv2], inner, levels, branch, common),
            builder.layer(shortcut, parts[shortcut], received, levels, branch, common)
            if shortcut in parts
            else factor(common / received, branch, shortcut),
            factor(builder.scale(name, levels) / common, levels, name),
        )

    entrance = builder.images()
    stem = builder.layer("stem", parts["stem"], entrance.scale, entrance.levels, levels)
    scale, blocks = builder.scale("stem", levels), list[QuantizedBlock]()
    for index, _ in folded.get_submodule("blocks").named_children():
        blocks.append(block(f"blocks.{index}", scale))
        scale = builder.scale(f"blocks.{index}", levels)
    pooled = builder.scale("pool", levels)
    mean = QuantizedMean(factor(pooled / (scale * POSITIONS), levels, "pool"))
    fc = builder.layer("fc", parts["fc"], pooled, levels, builder.logits)
    modules = {"quantize": entrance, "stem": stem, "relu": nn.ReLU()}
    modules |= {"blocks": nn.Sequential(*blocks), "pool": mean, "fc": fc}
    return nn.Sequential(OrderedDict(modules)).eval()
