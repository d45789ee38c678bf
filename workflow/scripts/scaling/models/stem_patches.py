"""The pixels under each position of a 3×3 kernel, side by side: a convolution as a matrix product.

Convolutions of three channels leave matrix units idle; the product has 27 values in each sum.
"""

# mypy: disallow-untyped-defs=False
import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional

COLUMNS = 32
"""27 values and zeros: matrix units want a multiple of 8."""
ROWS = 128


def convolution(images: Tensor, weight: Tensor) -> Tensor:
    """`functional.conv2d(images, weight, padding=1)` in channels-last order and weight's type.

    `images` are [images, 3, height, width] and get no gradient, `weight` is [channels, 3, 3, 3].
    """
    count, _, height, width = images.shape
    images = images.contiguous(memory_format=torch.channels_last)
    positions = count * height * width
    patches = torch.empty(positions, COLUMNS, dtype=weight.dtype, device=images.device)
    _gather[(triton.cdiv(positions, ROWS),)](
        images, patches, positions, height, width, ROWS=ROWS, COLUMNS=COLUMNS
    )
    values = weight.permute(0, 2, 3, 1).flatten(1)
    matrix = functional.pad(values, (0, COLUMNS - values.shape[1]))
    return (patches @ matrix.t()).view(count, height, width, -1).permute(0, 3, 1, 2)


@triton.jit
def _gather(images, patches, positions, height, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    position = (tl.program_id(0) * ROWS + tl.arange(0, ROWS).to(tl.int64))[:, None]
    column = tl.arange(0, COLUMNS)[None, :]
    down, right = column // 9 - 1, column % 9 // 3 - 1
    y, x = position // width % height + down, position % width + right
    exists = position < positions
    inside = exists & (column < 27) & (y >= 0) & (y < height) & (x >= 0) & (x < width)
    value = tl.load(images + (position + down * width) * 3 + column % 9 - 3, mask=inside, other=0.0)
    tl.store(patches + position * COLUMNS + column, value.to(patches.dtype.element_ty), mask=exists)
