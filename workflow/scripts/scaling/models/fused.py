"""Batch norm, residual and rectifier as one step of a training pass, with few passes over memory.

Beside the convolutions this is what a ResNet spends its time on, and what counts is how often the
activations are read and written. Forward they are read for the sums, then read and written for the
result; backward the gradients are read for their sums, then read and written. Where the rectifier
was shut is found again from what is read anyway.
"""

from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor, nn

from scaling.models import norm_kernels as kernels

SUMS = 4
"""Of each channel: values, their squares, gradients, gradients times normalized values."""


class FusedNorm(NamedTuple):
    """`norm` in training mode, and what follows it.

    `sums`, float32 [SUMS · channels], has to be zero before the forward pass. After the backward
    pass the gradients of weight and bias are parts of it.
    """

    norm: nn.BatchNorm2d
    rectifies: bool
    sums: Tensor

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Normalized `x` [images, channels, height, width], plus `residual`, rectified: twice.

        Both results are the same array. Who uses it in two places takes one for each: their
        gradients then arrive apart, and no pass is needed to add them up.
        """
        result: tuple[Tensor, Tensor] = _Normalized.apply(
            x, self.norm.weight, self.norm.bias, residual, self
        )
        return result


class _Normalized(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, residual: Tensor | None, fused: FusedNorm
    ) -> tuple[Tensor, Tensor]:
        x = _in_rows(x)
        y = torch.empty_like(x)
        sums, norm, launch = fused.sums.view(SUMS, -1), fused.norm, _Launch(x)
        kernels.sum_values[launch.shared](x, sums, launch.rows, **launch.shape)
        kernels.normalize[launch.each](
            x,
            y if residual is None else _in_rows(residual),
            y,
            sums,
            weight,
            bias,
            norm.running_mean,
            norm.running_var,
            launch.rows,
            norm.eps,
            norm.momentum,
            ADDS=residual is not None,
            RECTIFIES=fused.rectifies,
            **launch.shape,
        )
        ctx.save_for_backward(x, weight, bias, None if residual is None else y)
        ctx.fused = fused
        ctx.set_materialize_grads(False)
        return y, y.view_as(y)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        x, weight, bias, y = ctx.saved_tensors
        fused, launch = ctx.fused, _Launch(x)
        sums = fused.sums.view(SUMS, -1)
        arrived = [_in_rows(gradient) for gradient in gradients if gradient is not None]
        stores = len(arrived) == 2 or y is not None
        g = torch.empty_like(x) if stores else arrived[0]
        kernels.sum_gradients[launch.shared](
            arrived[0],
            arrived[-1],
            x,
            x if y is None else y,
            g,
            sums,
            weight,
            bias,
            launch.rows,
            fused.norm.eps,
            TWO=len(arrived) == 2,
            ADDED=y is not None,
            RECTIFIED=fused.rectifies,
            **launch.shape,
        )
        dx = torch.empty_like(x)
        kernels.gradient_of_values[launch.each](
            g,
            x,
            dx,
            sums,
            weight,
            bias,
            launch.rows,
            fused.norm.eps,
            RECTIFIED=fused.rectifies and not stores,
            **launch.shape,
        )
        return dx, sums[3], sums[2], None if y is None else g, None


def _in_rows(x: Tensor) -> Tensor:
    """`x` with the channels of a position side by side in memory."""
    return x.contiguous(memory_format=torch.channels_last)


class _Launch:
    """Tile and grids of the kernels on activations like `x`.

    Blocks either take a tile `each`, or a number of them `shared` all tiles.
    """

    def __init__(self, x: Tensor) -> None:
        channels = x.shape[1]
        columns = min(channels & -channels, kernels.COLUMNS)
        tile_rows = kernels.TILE // columns
        self.rows = x.numel() // channels
        self.shape = {
            "CHANNELS": channels,
            "ROWS": tile_rows,
            "COLUMNS": columns,
            "num_warps": kernels.WARPS,
        }
        tiles, parts = triton.cdiv(self.rows, tile_rows), channels // columns
        self.each = (tiles, parts)
        self.shared = (min(tiles, triton.cdiv(kernels.BLOCKS, parts)), parts)
