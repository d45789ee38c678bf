"""A ResNet-18 in which few Triton kernels compute batch norms, residual additions and ReLUs.

The forward pass reads each activation twice: first for the sums that give mean and variance, then
to normalize. The backward pass reads each gradient twice, too. The mask of a ReLU is not stored,
but computed again from activations.
"""

from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor, nn
from torch.nn import functional

from extras.kernels import norm_kernels as kernels
from scaling.models.resnet import BasicBlock, ResNet18
from scaling.training.captured_steps import SideStream

ASIDE_UP_TO = 512
"""Largest batch whose weight gradients are computed on a second CUDA stream. On one H100, this
shortens a step of 512 images by 2 %, but no step of 2048, where each kernel fills the GPU."""
SUMS = 4
"""Number of sums per channel: of x, x², g and g · x̂, which `norm_kernels` defines."""
Twice = tuple[Tensor, Tensor]
"""Two tensors that share one storage. `FusedNorm.__call__` explains why there are two."""


class FusedNorm(NamedTuple):
    """Batch norm in training mode, fused with the residual addition and the ReLU that follow it.

    `sums` is float32 [SUMS · channels], and must be 0 before the forward pass. The backward pass
    writes the gradients of the norm's weight and bias to `sums`.
    """

    norm: nn.BatchNorm2d
    sums: Tensor

    def __call__(
        self, x: Tensor, residual: Tensor | None = None, residual_norm: "FusedNorm | None" = None
    ) -> Twice:
        """Return relu(norm(x) + residual) as two tensors that share one storage.

        `x` is [images, channels, height, width]. If `residual` is None, nothing is added. If given,
        `residual_norm` normalizes the residual first. Use each result in one operation. The
        backward kernel then receives two gradients, and adds them without an extra kernel.
        """
        norms = [one.norm for one in (self, residual_norm) if one]
        parameters = [parameter for norm in norms for parameter in (norm.weight, norm.bias)]
        result: Twice = _Normalized.apply(self, residual_norm, x, residual, *parameters)
        return result

    @property
    def arrays(self) -> kernels.Norm:
        norm = self.norm
        own = norm.weight, norm.bias, norm.running_mean, norm.running_var
        return kernels.Norm(self.sums, *own)


class _Normalized(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        fused: FusedNorm,
        other: FusedNorm | None,
        x: Tensor,
        residual: Tensor | None,
        *parameters: Tensor,
    ) -> Twice:
        x = _in_rows(x)
        y = torch.empty_like(x)
        launch, added = _Launch(x), x if residual is None else _in_rows(residual)
        kernels.sum_values[launch.shared](x, fused.sums, launch.rows, **launch.shape)
        if other:
            kernels.sum_values[launch.shared](added, other.sums, launch.rows, **launch.shape)
        kernels.normalize[launch.each](
            *(x, added, y, fused.arrays, (other or fused).arrays),
            *(launch.rows, fused.norm.eps, fused.norm.momentum),
            ADDS=residual is not None,
            NORMALIZES=other is not None,
            **launch.shape,
        )
        ctx.save_for_backward(x, added if other else x, None if residual is None else y)
        ctx.fused, ctx.other = fused, other
        ctx.set_materialize_grads(False)
        return y, y.view_as(y)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        x, residual, y = ctx.saved_tensors
        fused, other, launch = ctx.fused, ctx.other, _Launch(x)
        norms = fused.arrays, (other or fused).arrays
        arrived = [_in_rows(gradient) for gradient in gradients if gradient is not None]
        stores = len(arrived) == 2 or y is not None
        g = torch.empty_like(x) if stores else arrived[0]
        kernels.sum_gradients[launch.shared](
            *(arrived[0], arrived[-1], x, x if y is None else y, g, residual),
            *(*norms, launch.rows, fused.norm.eps),
            TWO=len(arrived) == 2,
            ADDED=y is not None,
            NORMALIZED=other is not None,
            **launch.shape,
        )
        dx = torch.empty_like(x)
        dresidual = torch.empty_like(x) if other else g
        kernels.gradient_of_values[launch.each](
            *(g, x, dx, residual, dresidual),
            *(*norms, launch.rows, fused.norm.eps),
            NORMALIZED=other is not None,
            RECTIFIED=not stores,
            **launch.shape,
        )
        sums = [one.sums.view(SUMS, -1) for one in (fused, other) if one]
        of_parameters = [row for own in sums for row in (own[3], own[2])]
        return None, None, dx, None if y is None else dresidual, *of_parameters


def _in_rows(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)


class _Launch:
    """Grids and tile sizes for kernels that process `x` [images, channels, height, width].

    Grid `each` has one block per tile. Grid `shared` is for kernels that compute sums. It has at
    most about `BLOCKS` blocks, and each block processes one or more tiles.
    """

    def __init__(self, x: Tensor) -> None:
        channels = x.shape[1]
        columns = min(channels & -channels, kernels.COLUMNS)
        tile_rows = kernels.TILE // columns
        self.rows = x.numel() // channels
        waits = x.is_cuda and torch.cuda.get_device_capability(x.device) >= (9, 0)
        sizes = {"CHANNELS": channels, "ROWS": tile_rows, "COLUMNS": columns}
        self.shape = {**sizes, "WAITS": waits, "num_warps": kernels.WARPS}
        self.shape |= {"launch_pdl": True} if waits else {}
        tiles, parts = triton.cdiv(self.rows, tile_rows), channels // columns
        self.each = (tiles, parts)
        self.shared = (min(tiles, triton.cdiv(kernels.BLOCKS, parts)), parts)


def stem_convolution(images: Tensor, weight: Tensor) -> Tensor:
    """Return `conv2d(images, weight, padding=1)` in channels-last order, in the dtype of `weight`.

    `images` is [n, 3, height, width] and gets no gradient. `weight` is [channels, 3, 3, 3]. A
    matrix product is used, because a convolution of 3 channels leaves tensor cores idle.
    """
    count, _, height, width = images.shape
    images = images.contiguous(memory_format=torch.channels_last)
    positions = count * height * width
    shape = {"ROWS": kernels.PATCH_ROWS, "COLUMNS": kernels.PATCH_COLUMNS}
    patches = torch.empty(positions, shape["COLUMNS"], dtype=weight.dtype, device=images.device)
    blocks = triton.cdiv(positions, shape["ROWS"])
    kernels.gather_patches[(blocks,)](images, patches, positions, height, width, **shape)
    values = weight.permute(0, 2, 3, 1).flatten(1)
    matrix = functional.pad(values, (0, shape["COLUMNS"] - values.shape[1]))
    return (patches @ matrix.t()).view(count, height, width, -1).permute(0, 3, 1, 2)


class _Convolution(torch.autograd.Function):
    """A convolution whose weight gradient is computed on the CUDA stream `aside`."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, convolution: nn.Conv2d, aside: SideStream
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        stride, padding = convolution.stride, convolution.padding
        ctx.aside, ctx.options = aside, (stride, padding, (1, 1), False, (0, 0), 1)
        return functional.conv2d(x, weight, None, stride, padding)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        gradients = partial(torch.ops.aten.convolution_backward, dy, x, weight, None, *ctx.options)
        dx = gradients((True, False, False))[0]
        # Autograd adds this gradient to an earlier one at once, on the current stream.
        with ctx.aside.after(x, dy) if weight.grad is None else nullcontext():
            dw = gradients((False, True, False))[1]
        return dx, dw, None, None


class FusedResNet(nn.Module):
    """A module that computes `model` in training mode, on a GPU, in channels-last order.

    It uses the parameters and running statistics of `model`, but does not update
    num_batches_tracked. The gradients of batch norms are in a buffer that each forward pass sets to
    0, so read them before the next forward pass. If `compiled`, torch.compile compiles the head.
    The weight gradients of convolutions are computed on the CUDA stream `aside`.
    """

    def __init__(self, model: ResNet18, compiled: bool, aside: SideStream) -> None:
        super().__init__()
        self._model, self._aside = model, aside
        norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
        sizes = [SUMS * norm.num_features for norm in norms]
        self._sums = torch.zeros(sum(sizes), device=norms[0].weight.device)
        fused = map(FusedNorm, norms, self._sums.split(sizes))
        self._fused = dict(zip(norms, fused, strict=True))
        self._head = torch.compile(model.head, dynamic=False) if compiled else model.head

    def forward(self, images: Tensor) -> Tensor:
        self._sums.zero_()
        stem: Any = self._model.stem
        x = self._fused[stem[1]](stem_convolution(images, stem[0].weight))
        for stage in self._model.stages:
            blocks: Any = stage
            for block in blocks:
                x = self._block(block, x)
        logits: Tensor = self._head(x[0])
        return logits

    def _block(self, block: BasicBlock, x: Twice) -> Twice:
        inner, _ = self._fused[block.bn1](self._convolved(block.conv1, x[0]))
        last = self._convolved(block.conv2, inner)
        if not len(block.shortcut):
            return self._fused[block.bn2](last, x[1])
        shortcut: Any = block.shortcut
        residual = self._convolved(shortcut[0], x[1])
        return self._fused[block.bn2](last, residual, self._fused[shortcut[1]])

    def _convolved(self, convolution: nn.Conv2d, x: Tensor) -> Tensor:
        if type(convolution) is not nn.Conv2d or len(x) > ASIDE_UP_TO:
            return convolution(x)
        return _Convolution.apply(x, convolution.weight, convolution, self._aside)
