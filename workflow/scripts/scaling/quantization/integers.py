"""The arithmetic of symmetric quantization: scales, rounding, requantization, packed integers.

A scale is the number of integer levels per unit: q = round(s · x), so x ≈ q / s. Symmetric means
that zero maps to zero and one scale serves a whole tensor (or one row of weights). With
s = 127 / max|x| the largest value lands on ±127 and nothing is clipped (Jacob et al. 2018,
"Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference"; the
scale there is the reciprocal, the step size). b bits have qmax = 2^(b-1) - 1 in the place of 127.

Requantization, int32 accumulator to few bits, has one rule everywhere: the factor o becomes m / 2^n
with an integer m of at most 22 bits, and the product with the accumulator is rounded half to even.
An accumulator of 31 bits times 22 bits fits the 53 bits of a float64 exactly, so that a float64
product and a shift of int64 give the same integer, always. The factor is off by at most 2^-22 of
itself, 127 levels by at most 0.00003.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from scaling.config.scheme import Mistake
from scaling.core.errors import UserError

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
# Every integer up to here is a float32 and so is every sum on the way; 2^24 + 1 is not.
FLOAT32_EXACT = 2**24
MULTIPLIER_BITS = 22
# A product below 2^53 shifted by more than 54 bits is 0 in any case, and int64 has only 63.
LARGEST_SHIFT = 62
WORD_BYTES = 4
"""Of an int32 bias, of a scale, and of a requantization's multiplier (22 bits) with its shift."""


@dataclass(frozen=True)
class Levels:
    """The integers that a value may be rounded to, from `low` to `high` (qmax)."""

    low: int
    high: int

    @property
    def amax(self) -> int:
        """The largest magnitude: what an accumulator must be able to add up."""
        return max(-self.low, self.high)

    def clamp(self, values: Tensor) -> Tensor:
        """Clamp `values` to the levels."""
        return values.clamp(self.low, self.high)


def weight_levels(bits: int) -> Levels:
    """Return the levels from -(2^(bits-1) - 1) to the same above zero."""
    qmax = 2 ** (bits - 1) - 1
    return Levels(-qmax, qmax)


def activation_levels(bits: int, unsigned: bool = False) -> Levels:
    """Return -2^(bits-1) to 2^(bits-1) - 1, or 0 to 2^bits - 1 where nothing is negative."""
    half = 2 ** (bits - 1)
    return Levels(0, 2 * half - 1) if unsigned else Levels(-half, half - 1)


INT8 = activation_levels(8)


def symmetric_scale(max_abs: float, of: str, qmax: int = INT8.high) -> float:
    """Return qmax / max|x|: the scale that puts the largest magnitude on the last level.

    Raises UserError, naming what the values are `of`, when there is no such scale: all values
    zero, infinite or not a number.
    """
    if not (math.isfinite(max_abs) and max_abs > 0):
        raise UserError(
            f"{of} have no int8 scale, as their largest magnitude is {max_abs}; "
            "check the dataset and train the network again"
        )
    return qmax / max_abs


def to_levels(values: Tensor, scale: float | Tensor, levels: Levels) -> Tensor:
    """Round scale · values, clamped to `levels`: integer-valued float64, same shape.

    The product is float64, halves are rounded to even.
    """
    return (values.double() * scale).round_().clamp_(levels.low, levels.high)


def to_int32(values: Tensor, scale: float | Tensor) -> Tensor:
    """Round scale · values, clamped to int32; int32, same shape.

    In float64, where 2^31 - 1 is a number; float32 would round it up to 2^31 and overflow.
    """
    return to_levels(values, scale, Levels(INT32_MIN, INT32_MAX)).to(torch.int32)


@dataclass(frozen=True)
class Requantization:
    """m / 2^n for each output channel: int64 [out], with m < 2^22 (see above)."""

    multiplier: Tensor
    shift: Tensor

    @classmethod
    def nearest(cls, factors: Tensor, of: str) -> "Requantization":
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
        shift = MULTIPLIER_BITS - exponent.long()
        # A mantissa next to 1 rounds up to 2^22, one bit too many: the same number with one less.
        carried = multiplier == 2**MULTIPLIER_BITS
        return cls(torch.where(carried, multiplier // 2, multiplier), shift - carried.long())

    def cpu(self) -> "Requantization":
        """Copy it to the CPU."""
        return Requantization(self.multiplier.cpu(), self.shift.cpu())

    @property
    def factor(self) -> Tensor:
        """m / 2^n as float64 [out], exactly."""
        return torch.ldexp(self.multiplier.double(), -self.shift)

    def in_float64(self, accumulator: Tensor, levels: Levels) -> Tensor:
        """Round m · accumulator / 2^n and clamp: whole float64, channels in dimension 1."""
        return to_levels(accumulator, along_channels(self.factor, accumulator), levels)

    def in_integers(self, accumulator: Tensor, levels: Levels) -> Tensor:
        """Do the same for an int32 `accumulator`, by int64 products and shifts alone; int64."""
        product = accumulator.long() * along_channels(self.multiplier, accumulator)
        shift = along_channels(self.shift.clamp(max=LARGEST_SHIFT), accumulator)
        odd = (product >> shift) & 1
        half = torch.ones_like(shift) << (shift - 1)
        return levels.clamp((product + (half - 1) + odd) >> shift)


def along_channels(values: Tensor, like: Tensor) -> Tensor:
    """Shape `values` [channels] so as to meet dimension 1 of `like` [n, channels, …]."""
    return values.view(-1, *[1] * (like.dim() - 2))


def pack(weight: Tensor, bits: int) -> bytes:
    """Write the integers of `weight` in order, `bits` each in two's complement, without a gap.

    Zero bits fill the last byte.
    """
    values = weight.flatten().cpu().numpy().astype(np.uint8)
    each = np.unpackbits(values[:, np.newaxis], axis=1)[:, -bits:]
    return np.packbits(each).tobytes()


def layer_bytes(weight: Tensor, bits: int, scales: int) -> int:
    """Count the bytes of a layer: packed weights, an int32 bias for each output, its `scales`."""
    return len(pack(weight, bits)) + WORD_BYTES * (len(weight) + scales)


@dataclass(frozen=True)
class LayerScales:
    """Hold what a layer's formulas start from: levels per unit, float64.

    With weight scale w and the input's accumulated scale A, the accumulator has the scale
    S = w · A; a bias is rounded at scale S; the output factor is o = 127 / (S · max), so that
    S · o · max = 127. Each mistake that documents have made changes one of these, or the images
    that set max.

    `weight` [outputs]; `input` the true accumulated scale of the integers that the layer receives;
    `images` that of the network's input.
    """

    weight: Tensor
    input: float
    images: float

    @property
    def accumulator(self) -> Tensor:
        """S = w · A, the scale of the integers that the layer really adds up."""
        return self.weight * self.input


def _accumulator(scales: LayerScales, mistake: Mistake | None) -> Tensor:
    """Compute S as the document does."""
    return scales.weight * scales.images if mistake == "no_product" else scales.accumulator


def bias_scale(scales: LayerScales, mistake: Mistake | None) -> Tensor:
    """Compute the scale at which a bias becomes an integer: [outputs]."""
    accumulator = _accumulator(scales, mistake)
    if mistake == "bias_scale":
        return INT32_MAX / accumulator
    if mistake == "bias_unscaled":
        return torch.ones_like(accumulator)
    return accumulator


def output_factor(
    scales: LayerScales, max_abs: float, levels: Levels, mistake: Mistake | None
) -> Tensor:
    """Compute o, which takes the accumulator to the next layer's input: [outputs].

    `max_abs`, the clipping threshold of what the layer passes on, is to land on the last level.
    """
    last = 2 * levels.high + 1 if mistake == "255_for_127" else levels.high
    accumulator = _accumulator(scales, mistake)
    if mistake == "activation_scale":
        return last * max_abs / accumulator
    return last / (max_abs * accumulator)
