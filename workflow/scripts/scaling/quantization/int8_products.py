"""Multiplies 8-bit integers and adds up in int32, on the int8 units of CPUs and of GPUs.

PyTorch has a matrix product of int8 and no convolution, so the patches that a convolution looks at
become the rows of a matrix. Its inner part is in the order kernel row, kernel column, channel, in
which both sides are copied fastest. The product wants the sizes of NVIDIA's tensor cores, more than
16 rows and multiples of 8 else: it is filled up with zeros, which add nothing.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


def _filled(matrix: Tensor, rows: int, inner: int) -> Tensor:
    """Add zeros where some are needed: `pad` copies in any case."""
    return functional.pad(matrix, (0, inner, 0, rows)) if rows or inner else matrix


def multiply(rows: Tensor, weight: Tensor) -> Tensor:
    """Multiply int8 [n, inner] by int8 [outputs, inner]: int32 [n, outputs]."""
    (n, inner), outputs = rows.shape, len(weight)
    columns = _filled(weight, -outputs % 8, -inner % 8).T
    return torch._int_mm(_filled(rows, max(0, 17 - n), -inner % 8), columns)[:n, :outputs]


def patches(
    values: Tensor, kernel: tuple[int, ...], stride: Any, padding: Any, fill: int = 0
) -> Tensor:
    """Unfold [n, channels, height, width] to [n, rows, columns, kernel · channels]."""
    (down, across), last = padding, values.permute(0, 2, 3, 1)
    around = functional.pad(last, (0, 0, across, across, down, down), value=fill)
    for dimension in (1, 2):
        around = around.unfold(dimension, kernel[dimension - 1], stride[dimension - 1])
    return around.permute(0, 1, 2, 4, 5, 3).flatten(3)


def as_rows(weight: Tensor) -> Tensor:
    """Lay out [outputs, channels, kernel, kernel] as the rows that `patches` meet."""
    return weight.permute(0, 2, 3, 1).flatten(1)


def integer_products(values: Tensor, weight: Tensor, convolution: dict[str, Any] | None) -> Tensor:
    """Compute the sums of products of integers in int32: [n, outputs, …].

    `values` are int8, or int32 from 0 to 255: those are moved by 128 and the sums back, as
    Σ w·v = Σ w·(v - 128) + 128 · Σ w. `weight` is int8 [outputs, …]; `convolution` has stride and
    padding, None for a linear layer.
    """
    offset = 0
    if values.dtype != torch.int8:
        values, offset = (values - 128).to(torch.int8), 128
    rows, columns = values, weight
    if convolution is not None:
        rows = patches(values, tuple(weight.shape[2:]), fill=-offset, **convolution)
        columns = as_rows(weight)
    sums = multiply(rows.flatten(0, -2), columns)
    if offset:
        sums = sums + offset * columns.sum(dim=1, dtype=torch.int32)
    if convolution is None:
        return sums
    # PyTorch's pooling of integers refuses another layout.
    return sums.view(*rows.shape[:3], -1).permute(0, 3, 1, 2).contiguous()
