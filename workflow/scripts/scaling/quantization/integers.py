"""The arithmetic of symmetric quantization: levels, scales, rounded weights, requantization.

A scale is the number of integer levels per unit: q = round(s · x), so x ≈ q / s. Symmetric means
that zero maps to zero and one scale serves a whole tensor (or one row of weights). With
s = 127 / max|x| the largest value lands on ±127 and nothing is clipped (Jacob et al. 2018,
"Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference"; the
scale there is the reciprocal, the step size). b bits have qmax = 2^(b-1) - 1 in the place of 127.

Requantization, int32 accumulator to few bits, has one rule everywhere: the factor o becomes m / 2^n
with an integer m ≤ 2^22, and the product with the accumulator is rounded half to even. A product of
at most 2^31 · 2^22 is exact in the 53 bits of a float64, so that a float64 product and a shift of
int64 give the same integer, always: floats are requantized by the one, integers by the other. The
factor is off by at most 2^-22 of itself, 127 levels by at most 0.00003.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from scaling.config.scheme import Scheme
from scaling.core.errors import UserError
from scaling.quantization.calibration import Layer

WORD_BYTES = 4
"""Of an int32 bias, of a scale, and of a requantization's multiplier (22 bits) with its shift."""
MULTIPLIER_BITS = 22
# A product below 2^53 shifted by more than 54 bits is 0 in any case, and int64 has only 63.
LARGEST_SHIFT = 62


@dataclass(frozen=True)
class Levels:
    """The integers that a value may be rounded to, from `low` to `high` (qmax)."""

    low: int
    high: int

    @property
    def amax(self) -> int:
        """The largest magnitude: what an accumulator must be able to add up."""
        return max(-self.low, self.high)

    @property
    def dtype(self) -> torch.dtype:
        """int8, or int32 for what does not fit."""
        return torch.int8 if self.amax <= 128 else torch.int32

    def clamp(self, values: Tensor) -> Tensor:
        return values.clamp(self.low, self.high)


def weight_levels(bits: int) -> Levels:
    """Return the levels from -(2^(bits-1) - 1) to the same above zero."""
    qmax = 2 ** (bits - 1) - 1
    return Levels(-qmax, qmax)


def activation_levels(bits: int) -> Levels:
    """Return the levels from -2^(bits-1) to 2^(bits-1) - 1."""
    half = 2 ** (bits - 1)
    return Levels(-half, half - 1)


INT8 = activation_levels(8)
INT32 = Levels(-(2**31), 2**31 - 1)


def symmetric_scale(max_abs: float, of: str, qmax: int = INT8.high) -> float:
    """Return qmax / max|x|, the scale that puts the largest magnitude on the last level.

    Raises UserError, naming what the values are `of`, for one that is zero or not finite.
    """
    if not (math.isfinite(max_abs) and max_abs > 0):
        raise UserError(
            f"{of} have no int8 scale, as their largest magnitude is {max_abs}; "
            "check the dataset and train the network again"
        )
    return qmax / max_abs


def to_levels(values: Tensor, scale: float | Tensor, levels: Levels) -> Tensor:
    """Round scale · values, halves to even, clamped to `levels`: float64, same shape."""
    return (values.double() * scale).round_().clamp_(levels.low, levels.high)


@dataclass(frozen=True)
class RoundedLayer:
    """A layer's weights as integers and what goes with them.

    `weight` int8 in the layer's shape, `scales` float64 [outputs] in levels per unit (all equal
    with one scale for the tensor), `bias` float64 [outputs] in float units.
    """

    weight: Tensor
    scales: Tensor
    bias: Tensor

    @classmethod
    @torch.no_grad()
    def of(cls, name: str, layer: Layer, scheme: Scheme) -> "RoundedLayer":
        """Round each weight of `layer` to its nearest level, by scales that clip nothing.

        A row of zeros takes the tensor's scale; a tensor of zeros is a UserError that names it.
        """
        assert layer.bias is not None
        weight, levels = layer.weight.flatten(1).double(), weight_levels(scheme.weight_bits)
        largest = weight.abs().amax(dim=1)
        whole = symmetric_scale(largest.max().item(), f"the weights of {name}", levels.high)
        scales = torch.full_like(largest, whole)
        if scheme.weight_scales == "channel":
            scales = torch.where(largest > 0, levels.high / largest, whole)
        rounded = to_levels(weight, scales.unsqueeze(1), levels).view_as(layer.weight)
        return cls(rounded.to(torch.int8), scales, layer.bias.double())

    def packed_bytes(self, bits: int) -> int:
        """Count the bytes with weights of `bits`, an int32 bias for each output, and the scales."""
        words = len(self.bias) + len(set(self.scales.tolist()))
        return math.ceil(self.weight.numel() * bits / 8) + WORD_BYTES * words

    @torch.no_grad()
    def assign_to(self, layer: Layer) -> None:
        """Give the float `layer` the weights that the integers stand for."""
        scales = self.scales.view(-1, *[1] * (self.weight.dim() - 1))
        layer.weight.copy_(self.weight.double() / scales)


@dataclass(frozen=True)
class Requantization:
    """m / 2^n for each output channel (int64 [out]: see above), and the `levels` after.

    Called with values, channels in dimension 1, it rounds m · values / 2^n: float64 for floats that
    hold integers, and for integers by int64 products and shifts alone, as `levels`' own type.
    """

    multiplier: Tensor
    shift: Tensor
    levels: Levels

    @classmethod
    def nearest(cls, factors: Tensor, levels: Levels, of: str) -> "Requantization":
        """Find the closest to `factors`, float64 [out], of the layer called `of`.

        Raises UserError where one is not between 0 and 2^20.
        """
        if not bool(((factors > 0) & (factors < 2 ** (MULTIPLIER_BITS - 2))).all()):
            raise UserError(
                f"the outputs of {of} cannot be brought to few bits by a factor of "
                f"{factors.max().item():.3g}; train the network differently"
            )
        mantissa, exponent = torch.frexp(factors)
        multiplier = torch.round(mantissa * 2**MULTIPLIER_BITS).long()
        return cls(multiplier, MULTIPLIER_BITS - exponent.long(), levels)

    @property
    def factor(self) -> Tensor:
        """m / 2^n as float64 [out], exactly."""
        return torch.ldexp(self.multiplier.double(), -self.shift)

    def __call__(self, values: Tensor) -> Tensor:
        if values.is_floating_point():
            return to_levels(values, along_channels(self.factor, values), self.levels)
        product = values.long() * along_channels(self.multiplier, values)
        shift = along_channels(self.shift.clamp(max=LARGEST_SHIFT), values)
        half = torch.ones_like(shift) << (shift - 1)
        odd = (product >> shift).bitwise_and_(1)
        product.add_(odd).add_(half - 1).bitwise_right_shift_(shift)
        return product.clamp_(self.levels.low, self.levels.high).to(self.levels.dtype)


def along_channels(channels: Tensor, values: Tensor) -> Tensor:
    """Shape `channels` [channels] to meet dimension 1 of `values` [n, channels, …], beside them."""
    return channels.to(values.device).view(-1, *[1] * (values.dim() - 2))


def integer_products(values: Tensor, weight: Tensor, convolution: dict[str, Any] | None) -> Tensor:
    """Compute the sums of products of int8 values and weights: int32 [n, outputs, …].

    `weight` is [outputs, …]; `convolution` has stride and padding, None for a linear layer. PyTorch
    has no convolution of int8, so the patches that it looks at become the rows of a matrix.
    """
    if convolution is None:
        return _multiply(values, weight)
    rows = _patches(values, tuple(weight.shape[2:]), **convolution)
    sums = _multiply(rows.flatten(0, -2), weight.permute(0, 2, 3, 1).flatten(1))
    # PyTorch's pooling of integers refuses another layout.
    return sums.view(*rows.shape[:3], -1).permute(0, 3, 1, 2).contiguous()


def _patches(values: Tensor, kernel: tuple[int, ...], stride: Any, padding: Any) -> Tensor:
    """Unfold [n, channels, height, width] to [n, rows, columns, kernel · channels]."""
    (down, across), last = padding, values.permute(0, 2, 3, 1)
    around = functional.pad(last, (0, 0, across, across, down, down))
    for dimension in (1, 2):
        around = around.unfold(dimension, kernel[dimension - 1], stride[dimension - 1])
    return around.permute(0, 1, 2, 4, 5, 3).flatten(3)


def _multiply(rows: Tensor, weight: Tensor) -> Tensor:
    """Multiply int8 [n, inner] by int8 [outputs, inner]: int32 [n, outputs].

    Zeros fill up the sizes of NVIDIA's tensor cores: more than 16 rows, multiples of 8 else.
    """
    (n, inner), outputs = rows.shape, len(weight)
    if n < 17 or inner % 8:  # It copies in any case.
        rows = functional.pad(rows, (0, -inner % 8, 0, max(0, 17 - n)))
    columns = functional.pad(weight, (0, -inner % 8, 0, -outputs % 8)).T
    return torch._int_mm(rows, columns)[:n, :outputs]
