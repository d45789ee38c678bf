"""The forward pass of a ResNet18 in training, with fused norms and the stem as a matrix product."""

from typing import Any

import torch
from torch import Tensor, nn

from scaling.models import stem_patches
from scaling.models.fused import SUMS, FusedNorm
from scaling.models.resnet import BasicBlock, ResNet18

Twice = tuple[Tensor, Tensor]
"""One array as two results: see `FusedNorm.__call__`."""


class FusedResNet(nn.Module):
    """What `model` computes in training mode, on a GPU, in channels-last order.

    Input [batch, 3, height, width], output logits [batch, classes]. Parameters and running
    statistics are the model's own; the count of batches, which nothing reads, stays as it is. The
    backward pass has to end, and the norms' gradients to be read, before the next forward pass.
    With `compiled` the head is compiled.
    """

    def __init__(self, model: ResNet18, compiled: bool) -> None:
        super().__init__()
        self._model = model
        norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
        sizes = [SUMS * norm.num_features for norm in norms]
        self._sums = torch.zeros(sum(sizes), device=norms[0].weight.device)
        self._sums_of = dict(zip(norms, self._sums.split(sizes), strict=True))
        self._head = torch.compile(model.head, dynamic=False) if compiled else model.head

    def forward(self, images: Tensor) -> Tensor:
        self._sums.zero_()
        stem: Any = self._model.stem
        x = self._fused(stem[1])(stem_patches.convolution(images, stem[0].weight))
        for stage in self._model.stages:
            blocks: Any = stage
            for block in blocks:
                x = self._block(block, x)
        logits: Tensor = self._head(x[0])
        return logits

    def _block(self, block: BasicBlock, x: Twice) -> Twice:
        inner, _ = self._fused(block.bn1)(block.conv1(x[0]))
        residual = x[1]
        if len(block.shortcut):
            shortcut: Any = block.shortcut
            residual, _ = self._fused(shortcut[1], rectifies=False)(shortcut[0](residual))
        return self._fused(block.bn2)(block.conv2(inner), residual)

    def _fused(self, norm: nn.BatchNorm2d, rectifies: bool = True) -> FusedNorm:
        return FusedNorm(norm, rectifies, self._sums_of[norm])
