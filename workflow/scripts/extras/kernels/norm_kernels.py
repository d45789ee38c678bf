"""Triton kernels for batch norm with residual and ReLU on [rows, channels], and for im2col.

A row is a position of an image: channels-last memory as a matrix. Each kernel passes over its
arrays once. Sums over rows are float32 with atomic adds, so their last bits depend on the order in
which blocks end, as with cuDNN's weight gradients. `sums` is float32 [4, channels]: of x, of x², of
g, of g times normalized x; g is the gradient before ReLU. The variance is the mean of squares minus
the square of the mean: its error is about 1e-7 of the mean's square.
"""

# mypy: disallow-untyped-defs=False
import torch
import triton
import triton.language as tl

COLUMNS = 64
"""Maximum channels of a tile: 128 bytes of bf16."""
TILE = 4096
"""Elements that a block processes at a time: 32 per thread. Tile, warps and blocks are the fastest
of those tried on one H200 with batches of 32 to 2048."""
WARPS = 4
BLOCKS = 528
"""Number of blocks that compute sums: four for each of 132 multiprocessors."""
PATCH_COLUMNS = 32
"""27 values of a patch, padded with zeros: tensor cores need a multiple of 8."""
PATCH_ROWS = 128


def recorded(kernel):
    """Let a profiler record each launch of `kernel` with the arrays that it reads and writes."""
    run, name = kernel.run, f"triton_{kernel.fn.__name__}"

    def recording(*arguments, **options):
        arrays = {id(one): one for one in arguments if isinstance(one, torch.Tensor)}
        with torch._C._profiler._RecordFunctionFast(name, list(arrays.values())):
            return run(*arguments, **options)

    kernel.run = recording
    return kernel


@triton.jit
def _tile(block, rows, CHANNELS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Return the offsets [ROWS, COLUMNS] of a tile, and the mask of its existing rows."""
    row = (block * ROWS + tl.arange(0, ROWS).to(tl.int64))[:, None]
    return row * CHANNELS + _channel(COLUMNS)[None, :], row < rows


@triton.jit
def _channel(COLUMNS: tl.constexpr):
    return tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)


@triton.jit
def _affine(sums, weight, bias, rows, eps, CHANNELS: tl.constexpr, COLUMNS: tl.constexpr):
    """Return mean, variance and inverse deviation of x, and its normalizing scale and shift."""
    channel = _channel(COLUMNS)
    mean = tl.load(sums + channel) / rows
    variance = tl.maximum(tl.load(sums + CHANNELS + channel) / rows - mean * mean, 0.0)
    inverse = tl.rsqrt(variance + eps)
    scale = tl.load(weight + channel) * inverse
    return mean, variance, inverse, scale, tl.load(bias + channel) - mean * scale


@recorded
@triton.jit
def sum_values(x, sums, rows, CHANNELS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Add the sums of x and x²."""
    values = tl.zeros([ROWS, COLUMNS], tl.float32)
    squares = tl.zeros([ROWS, COLUMNS], tl.float32)
    for block in range(tl.program_id(0), tl.cdiv(rows, ROWS), tl.num_programs(0)):
        offsets, exists = _tile(block, rows, CHANNELS, ROWS, COLUMNS)
        value = tl.load(x + offsets, mask=exists, other=0.0).to(tl.float32)
        values += value
        squares += value * value
    channel = _channel(COLUMNS)
    tl.atomic_add(sums + channel, tl.sum(values, 0))
    tl.atomic_add(sums + CHANNELS + channel, tl.sum(squares, 0))


@recorded
@triton.jit
def normalize(
    x,
    residual,
    y,
    sums,
    weight,
    bias,
    running_mean,
    running_variance,
    rows,
    eps,
    momentum,
    ADDS: tl.constexpr,
    RECTIFIES: tl.constexpr,
    CHANNELS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Write y = relu(normalized x + residual), each part optional; update running statistics."""
    mean, variance, _, scale, shift = _affine(sums, weight, bias, rows, eps, CHANNELS, COLUMNS)
    offsets, exists = _tile(tl.program_id(0), rows, CHANNELS, ROWS, COLUMNS)
    result = tl.load(x + offsets, mask=exists).to(tl.float32) * scale[None, :] + shift[None, :]
    if ADDS:
        result += tl.load(residual + offsets, mask=exists).to(tl.float32)
    if RECTIFIES:
        result = tl.where(result < 0, 0.0, result)  # NaN stays NaN, unlike in tl.maximum
    tl.store(y + offsets, result.to(y.dtype.element_ty), mask=exists)
    if tl.program_id(0) == 0:
        channel = _channel(COLUMNS)
        old_mean = tl.load(running_mean + channel)
        old_variance = tl.load(running_variance + channel)
        unbiased = variance * (rows / (rows - 1.0))
        tl.store(running_mean + channel, old_mean + momentum * (mean - old_mean))
        tl.store(running_variance + channel, old_variance + momentum * (unbiased - old_variance))


@recorded
@triton.jit
def sum_gradients(
    dy,
    other_dy,
    x,
    y,
    g,
    sums,
    weight,
    bias,
    rows,
    eps,
    TWO: tl.constexpr,
    ADDED: tl.constexpr,
    RECTIFIED: tl.constexpr,
    CHANNELS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Add the sums of g and of g times normalized x: the gradients of bias and weight.

    g is written only if TWO gradients arrive or a residual was ADDED: reading it is then faster
    than recomputing it.
    """
    mean, _, inverse, scale, shift = _affine(sums, weight, bias, rows, eps, CHANNELS, COLUMNS)
    plain = tl.zeros([ROWS, COLUMNS], tl.float32)
    weighted = tl.zeros([ROWS, COLUMNS], tl.float32)
    for block in range(tl.program_id(0), tl.cdiv(rows, ROWS), tl.num_programs(0)):
        offsets, exists = _tile(block, rows, CHANNELS, ROWS, COLUMNS)
        gradient = tl.load(dy + offsets, mask=exists, other=0.0).to(tl.float32)
        if TWO:
            gradient += tl.load(other_dy + offsets, mask=exists, other=0.0).to(tl.float32)
        value = tl.load(x + offsets, mask=exists, other=0.0).to(tl.float32)
        if RECTIFIED:
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
    channel = _channel(COLUMNS)
    tl.atomic_add(sums + 2 * CHANNELS + channel, tl.sum(plain, 0))
    tl.atomic_add(sums + 3 * CHANNELS + channel, tl.sum(weighted, 0) * inverse)


@recorded
@triton.jit
def gradient_of_values(
    dy,
    x,
    dx,
    sums,
    weight,
    bias,
    rows,
    eps,
    RECTIFIED: tl.constexpr,
    CHANNELS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Write dx (Ioffe and Szegedy 2015, arXiv:1502.03167, section 3), of g or of RECTIFIED dy."""
    mean, _, inverse, scale, shift = _affine(sums, weight, bias, rows, eps, CHANNELS, COLUMNS)
    channel = _channel(COLUMNS)
    plain = tl.load(sums + 2 * CHANNELS + channel) / rows
    weighted = tl.load(sums + 3 * CHANNELS + channel) / rows * inverse
    offsets, exists = _tile(tl.program_id(0), rows, CHANNELS, ROWS, COLUMNS)
    gradient = tl.load(dy + offsets, mask=exists).to(tl.float32)
    value = tl.load(x + offsets, mask=exists).to(tl.float32)
    if RECTIFIED:
        gradient = tl.where(value * scale[None, :] + shift[None, :] > 0, gradient, 0.0)
    result = gradient - plain[None, :] - (value - mean[None, :]) * weighted[None, :]
    tl.store(dx + offsets, (result * scale[None, :]).to(dx.dtype.element_ty), mask=exists)


@recorded
@triton.jit
def gather_patches(
    images, patches, positions, height, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """Write the values under each position of a 3×3 kernel as rows of `patches` (im2col)."""
    position = (tl.program_id(0) * ROWS + tl.arange(0, ROWS).to(tl.int64))[:, None]
    column = tl.arange(0, COLUMNS)[None, :]
    down, right = column // 9 - 1, column % 9 // 3 - 1
    y, x = position // width % height + down, position % width + right
    exists = position < positions
    inside = exists & (column < 27) & (y >= 0) & (y < height) & (x >= 0) & (x < width)
    value = tl.load(images + (position + down * width) * 3 + column % 9 - 3, mask=inside, other=0.0)
    tl.store(patches + position * COLUMNS + column, value.to(patches.dtype.element_ty), mask=exists)
