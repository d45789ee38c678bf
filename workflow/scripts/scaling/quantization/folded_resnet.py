"""ResNet-18 with its batch norms folded into the convolutions before them: what is quantized.

In evaluation a batch norm is a factor and a shift for each channel, γ / √(σ² + ε) and β - μ times
that factor, so it becomes part of the weights and biases (Jacob et al. 2018, section 3.2). Nothing
of the function changes but the rounding of float32.
"""

from collections.abc import Callable, Iterable
from contextlib import ExitStack

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from scaling.models.resnet import BasicBlock, ResNet18
from scaling.quantization.calibration import IMAGES, Range


class FoldedBlock(nn.Module):
    """Two convolutions and a shortcut, which is a convolution too or the block's input."""

    def __init__(
        self, conv1: nn.Conv2d, conv2: nn.Conv2d, shortcut: nn.Conv2d | nn.Identity
    ) -> None:
        super().__init__()
        self.conv1, self.relu1, self.conv2 = conv1, nn.ReLU(), conv2
        self.shortcut, self.relu2 = shortcut, nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        passed = self.relu1(self.conv1(x))
        return self.relu2(self.conv2(passed) + self.shortcut(x))


class FoldedResNet(nn.Module):
    """Images [n, 3, 32, 32] to logits [n, classes]: stem, eight blocks, pooling, linear layer."""

    def __init__(self, stem: nn.Conv2d, blocks: Iterable[FoldedBlock], fc: nn.Linear) -> None:
        super().__init__()
        self.stem, self.relu = stem, nn.ReLU()
        self.blocks = nn.ModuleList(blocks)
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), fc

    def forward(self, images: Tensor) -> Tensor:
        values = self.relu(self.stem(images))
        for block in self.blocks:
            values = block(values)
        logits: Tensor = self.fc(self.pool(values).flatten(1))
        return logits


@torch.no_grad()
def fold(network: ResNet18) -> FoldedResNet:
    """The same function as `network` in evaluation mode, without batch norms."""
    fc = network.head[2]
    assert isinstance(fc, nn.Linear)
    blocks = [_folded_block(block) for stage in network.stages for block in stage.children()]
    return FoldedResNet(_merged(network.stem[0], network.stem[1]), blocks, fc).eval()


def _folded_block(block: nn.Module) -> FoldedBlock:
    assert isinstance(block, BasicBlock)
    shortcut = _merged(*block.shortcut) if len(block.shortcut) else nn.Identity()
    return FoldedBlock(_merged(block.conv1, block.bn1), _merged(block.conv2, block.bn2), shortcut)


def _merged(conv: nn.Module, norm: nn.Module) -> nn.Conv2d:
    """One convolution with a bias that does what both do."""
    assert isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d)
    return fuse_conv_bn_eval(conv, norm)


def folded_layers(network: FoldedResNet) -> dict[str, nn.Conv2d | nn.Linear]:
    """The layers with weights, by name."""
    return {
        name: module
        for name, module in network.named_modules()
        if isinstance(module, nn.Conv2d | nn.Linear)
    }


@torch.no_grad()
def ranges(network: FoldedResNet, batches: Iterable[Tensor]) -> dict[str, Range]:
    """The ranges that quantization needs, on all `batches` [n, 3, 32, 32].

    Those of the `IMAGES`, of what the stem, each `conv1` and each block pass on after their ReLU,
    and of what each `conv2`, `shortcut`, the pooling and the last layer give.
    """
    watched: dict[str, nn.Module] = {"stem": network.relu}
    for index, block in enumerate(network.blocks):
        name = f"blocks.{index}"
        watched[f"{name}.conv1"] = block.get_submodule("relu1")
        watched[f"{name}.conv2"] = block.get_submodule("conv2")
        watched[f"{name}.shortcut"] = block.get_submodule("shortcut")
        watched[name] = block.get_submodule("relu2")
    watched |= {"pool": network.pool, "fc": network.fc}
    found = {name: Range() for name in (IMAGES, *watched)}

    def watch(name: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
        return lambda _module, _inputs, output: found[name].see(output)

    with ExitStack() as hooks:
        for name, module in watched.items():
            hooks.callback(module.register_forward_hook(watch(name)).remove)
        for batch in batches:
            found[IMAGES].see(batch)
            network(batch)
    return found
