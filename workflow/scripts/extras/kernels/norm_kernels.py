"""Triton kernels for batch norm with residual addition and ReLU, and for im2col.

Activations are arrays [rows, channels]. A row is one pixel of an image in channels-last memory.
Kernels that compute sums read rows from last to first. They begin with the rows that the preceding
kernel wrote last, and end with the rows that the next kernel reads first. These rows are still in
the cache.

x is the input of a norm, x̂ = (x - mean) / standard deviation, and g is the gradient with respect
to the input of ReLU. The array `sums` of a norm, float32 [4, channels], contains the sums over rows
of x, x², g and g · x̂. Blocks add to it atomically, so its last bits vary between runs. The
variance is computed as mean(x²) - mean(x)², with an error of 1e-7 · mean(x²).

If WAITS is true, the blocks of a kernel start before the preceding kernel ends, and then wait for
its end (programmatic dependent launch, compute capability 9.0).
"""

# mypy: disallow-untyped-defs=False
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from triton.language import constexpr

COLUMNS = 64
"""Maximum number of channels in a tile: 128 bytes in bf16."""
TILE = 4096
"""Number of elements in a tile. TILE, WARPS and BLOCKS have the fastest values for an H200."""
WARPS = 4
BLOCKS = 528
"""Maximum number of blocks of a kernel that computes sums: 4 per multiprocessor of an H200."""
PATCH_COLUMNS = 32
"""Columns of the im2col matrix: 27 values, then 5 zeros. Tensor cores need a multiple of 8."""
PATCH_ROWS = 128


class Norm(NamedTuple):
    """The arrays of one batch norm, as one argument of a kernel."""

    sums: Any
    weight: Any
    bias: Any
    running_mean: Any
    running_variance: Any


def recorded(kernel):
    """Make profilers record the launches and tensor arguments of `kernel`; return `kernel`."""
    run, name = kernel.run, f"triton_{kernel.fn.__name__}"

    def recording(*arguments, **options):
        arrays = {one.data_ptr(): one for one in arguments if isinstance(one, torch.Tensor)}
        with torch._C._profiler._RecordFunctionFast(name, list(arrays.values())):
            return run(*arguments, **options)

    kernel.run = recording
    return kernel


@triton.jit
def _tile(block, rows, CHANNELS: constexpr, ROWS: constexpr, COLUMNS: constexpr):
    """Return the offsets [ROWS, COLUMNS] of a tile's elements, and whether each row exists."""
    row = (block * ROWS + tl.arange(0, ROWS).to(tl.int64))[:, None]
    return row * CHANNELS + _channel(COLUMNS)[None, :], row < rows


@triton.jit
def _channel(COLUMNS: constexpr):
    return tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)


@triton.jit
def _affine(norm, rows, eps, CHANNELS: constexpr, COLUMNS: constexpr):
    """Return for each channel: mean, variance, 1 / standard deviation, scale, shift.

    The first three are of x, the input of the norm. The norm's output is x · scale + shift.
    """
    channel = _channel(COLUMNS)
    mean = tl.load(norm.sums + channel) / rows
    variance = tl.maximum(tl.load(norm.sums + CHANNELS + channel) / rows - mean * mean, 0.0)
    inverse = tl.rsqrt(variance + eps)
    scale = tl.load(norm.weight + channel) * inverse
    return mean, variance, inverse, scale, tl.load(norm.bias + channel) - mean * scale


@triton.jit
def _begin(WAITS: constexpr):
    if WAITS:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()


@recorded
@triton.jit
def sum_values(
    x, sums, rows, CHANNELS: constexpr, ROWS: constexpr, COLUMNS: constexpr, WAITS: constexpr
):
    """Add the sums of x and x² over all rows to `sums`."""
    _begin(WAITS)
    values = tl.zeros([ROWS, COLUMNS], tl.float32)
    squares = tl.zeros([ROWS, COLUMNS], tl.float32)
    tiles = tl.cdiv(rows, ROWS)
    for block in range(tl.program_id(0), tiles, tl.num_programs(0)):
        offsets, exists = _tile(tiles - 1 - block, rows, CHANNELS, ROWS, COLUMNS)
        value = tl.load(x + offsets, mask=exists, other=0.0).to(tl.float32)
        values += value
        squares += value * value
    channel = _channel(COLUMNS)
    tl.atomic_add(sums + channel, tl.sum(values, 0))
    tl.atomic_add(sums + CHANNELS + channel, tl.sum(squares, 0))


@triton.jit
def _normalized(
    x, norm, rows, eps, momentum, CHANNELS: constexpr, ROWS: constexpr, COLUMNS: constexpr
):
    """Return a tile of norm(x). The block of the first tile also updates the running statistics."""
    mean, variance, _, scale, shift = _affine(norm, rows, eps, CHANNELS, COLUMNS)
    offsets, exists = _tile(tl.program_id(0), rows, CHANNELS, ROWS, COLUMNS)
    if tl.program_id(0) == 0:
        channel = _channel(COLUMNS)
        old_mean = tl.load(norm.running_mean + channel)
        old_variance = tl.load(norm.running_variance + channel)
        unbiased = variance * (rows / (rows - 1.0))
        tl.store(norm.running_mean + channel, old_mean + momentum * (mean - old_mean))
        new_variance = old_variance + momentum * (unbiased - old_variance)
        tl.store(norm.running_variance + channel, new_variance)
    value = tl.load(x + offsets, mask=exists).to(tl.float32)
    return value * scale[None, :] + shift[None, :]


@recorded
@triton.jit
def normalize(
    x,
    residual,
    y,
    norm,
    residual_norm,
    rows,
    eps,
    momentum,
    ADDS: constexpr,
    NORMALIZES: constexpr,
    CHANNELS: constexpr,
    ROWS: constexpr,
    COLUMNS: constexpr,
    WAITS: constexpr,
):
    """Write y = relu(norm(x) + r).

    r is residual_norm(residual) if NORMALIZES, else the residual if ADDS, else 0.
    """
    _begin(WAITS)
    result = _normalized(x, norm, rows, eps, momentum, CHANNELS, ROWS, COLUMNS)
    offsets, exists = _tile(tl.program_id(0), rows, CHANNELS, ROWS, COLUMNS)
    if NORMALIZES:
        result += _normalized(residual, residual_norm, rows, eps, momentum, CHANNELS, ROWS, COLUMNS)
    elif ADDS:
        result += tl.load(residual + offsets, mask=exists).to(tl.float32)
    result = tl.where(result < 0, 0.0, result)  # NaN stays NaN, unlike in tl.maximum
    tl.store(y + offsets, result.to(y.dtype.element_ty), mask=exists)


@recorded
@triton.jit
def sum_gradients(
    dy,
    other_dy,
    x,
    y,
    g,
    residual,
    norm,
    residual_norm,
    rows,
    eps,
    TWO: constexpr,
    ADDED: constexpr,
    NORMALIZED: constexpr,
    CHANNELS: constexpr,
    ROWS: constexpr,
    COLUMNS: constexpr,
    WAITS: constexpr,
):
    """Add the sums over rows of g and of g · x̂ to `norm.sums`; the module defines x̂, g and WAITS.

    The gradient with respect to the output of ReLU is `dy + other_dy` if TWO, else `dy`. ADDED is
    true if a residual was added before ReLU. If TWO or ADDED, also write g. If NORMALIZED, add the
    sums of g and of g · (normalized residual) to `residual_norm.sums`.
    """
    _begin(WAITS)
    mean, _, inverse, scale, shift = _affine(norm, rows, eps, CHANNELS, COLUMNS)
    its_mean, _, its_inverse, _, _ = _affine(residual_norm, rows, eps, CHANNELS, COLUMNS)
    plain = tl.zeros([ROWS, COLUMNS], tl.float32)
    weighted = tl.zeros([ROWS, COLUMNS], tl.float32)
    its_weighted = tl.zeros([ROWS, COLUMNS], tl.float32)
    tiles = tl.cdiv(rows, ROWS)
    for block in range(tl.program_id(0), tiles, tl.num_programs(0)):
        offsets, exists = _tile(tiles - 1 - block, rows, CHANNELS, ROWS, COLUMNS)
        gradient = tl.load(dy + offsets, mask=exists, other=0.0).to(tl.float32)
        if TWO:
            gradient += tl.load(other_dy + offsets, mask=exists, other=0.0).to(tl.float32)
        value = tl.load(x + offsets, mask=exists, other=0.0).to(tl.float32)
        if ADDED:
            passed = tl.load(y + offsets, mask=exists, other=0.0) > 0
        else:
            passed = value * scale[None, :] + shift[None, :] > 0
        gradient = tl.where(passed, gradient, 0.0)
        if TWO or ADDED:
            written = gradient.to(g.dtype.element_ty)
            tl.store(g + offsets, written, mask=exists)
            gradient = written.to(tl.float32)
        plain += gradient
        weighted += gradient * (value - mean[None, :])
        if NORMALIZED:
            value = tl.load(residual + offsets, mask=exists, other=0.0).to(tl.float32)
            its_weighted += gradient * (value - its_mean[None, :])
    places, plain_sum = 2 * CHANNELS + _channel(COLUMNS), tl.sum(plain, 0)
    tl.atomic_add(norm.sums + places, plain_sum)
    tl.atomic_add(norm.sums + CHANNELS + places, tl.sum(weighted, 0) * inverse)
    if NORMALIZED:
        tl.atomic_add(residual_norm.sums + places, plain_sum)
        its_sum = tl.sum(its_weighted, 0) * its_inverse
        tl.atomic_add(residual_norm.sums + CHANNELS + places, its_sum)


@recorded
@triton.jit
def gradient_of_values(
    dy,
    x,
    dx,
    residual,
    dresidual,
    norm,
    residual_norm,
    rows,
    eps,
    NORMALIZED: constexpr,
    RECTIFIED: constexpr,
    CHANNELS: constexpr,
    ROWS: constexpr,
    COLUMNS: constexpr,
    WAITS: constexpr,
):
    """Write `dx`, the gradient with respect to x, which is the input of `norm`.

    `dy` is the gradient with respect to the output of ReLU if RECTIFIED, else g (see the module).
    If NORMALIZED, also write `dresidual`, the gradient with respect to the input of
    `residual_norm`. The formula is in arXiv:1502.03167, section 3.
    """
    _begin(WAITS)
    offsets, exists = _tile(tl.program_id(0), rows, CHANNELS, ROWS, COLUMNS)
    gradient = tl.load(dy + offsets, mask=exists).to(tl.float32)
    value = tl.load(x + offsets, mask=exists).to(tl.float32)
    if RECTIFIED:
        _, _, _, scale, shift = _affine(norm, rows, eps, CHANNELS, COLUMNS)
        gradient = tl.where(value * scale[None, :] + shift[None, :] > 0, gradient, 0.0)
    result = _before_norm(gradient, value, norm, rows, eps, CHANNELS, COLUMNS)
    tl.store(dx + offsets, result.to(dx.dtype.element_ty), mask=exists)
    if NORMALIZED:
        value = tl.load(residual + offsets, mask=exists).to(tl.float32)
        result = _before_norm(gradient, value, residual_norm, rows, eps, CHANNELS, COLUMNS)
        tl.store(dresidual + offsets, result.to(dx.dtype.element_ty), mask=exists)


@triton.jit
def _before_norm(gradient, value, norm, rows, eps, CHANNELS: constexpr, COLUMNS: constexpr):
    """Return a tile of the gradient with respect to x, from `gradient` with respect to norm(x)."""
    mean, _, inverse, scale, _ = _affine(norm, rows, eps, CHANNELS, COLUMNS)
    channel = _channel(COLUMNS)
    plain = tl.load(norm.sums + 2 * CHANNELS + channel) / rows
    weighted = tl.load(norm.sums + 3 * CHANNELS + channel) / rows * inverse
    result = gradient - plain[None, :] - (value - mean[None, :]) * weighted[None, :]
    return result * scale[None, :]


@recorded
@triton.jit
def gather_patches(images, patches, positions, height, width, ROWS: constexpr, COLUMNS: constexpr):
    """Write to `patches` the im2col matrix of `images` for a 3×3 convolution with padding 1.

    A row has the 27 values of the 3×3 pixels around one pixel, then zeros.
    """
    position = (tl.program_id(0) * ROWS + tl.arange(0, ROWS).to(tl.int64))[:, None]
    column = tl.arange(0, COLUMNS)[None, :]
    down, right = column // 9 - 1, column % 9 // 3 - 1
    y, x = position // width % height + down, position % width + right
    exists = position < positions
    inside = exists & (column < 27) & (y >= 0) & (y < height) & (x >= 0) & (x < width)
    value = tl.load(images + (position + down * width) * 3 + column % 9 - 3, mask=inside, other=0.0)
    tl.store(patches + position * COLUMNS + column, value.to(patches.dtype.element_ty), mask=exists)
