"""The arithmetic of symmetric quantization: scales, rounding to integers, and requantization.

A scale counts integer steps per unit: q = round(s · x), so x ≈ q / s. Symmetric means that zero
maps to zero and one scale serves a whole tensor (or one row of weights). With s = 127 / max|x| the
largest value lands on ±127 and nothing is clipped (Jacob et al. 2018, "Quantization and Training of
Neural Networks for Efficient Integer-Arithmetic-Only Inference"; there the scale is the reciprocal,
the step's size). b bits have 2^(b-1) - 1 in the place of 127.

Requantization, int32 accumulator to few bits, has one rule everywhere: the factor o becomes m / 2^n
with an integer m of at most 22 bits, and the product with the accumulator is rounded half to even.
An accumulator of 31 bits times 22 bits fits the 53 bits of a float64 exactly, so that a float64
product and a shift of int64 give the same integer, always. The factor is off by at most 2^-22 of
itself, 127 steps by at most 0.00003.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from scaling.core.errors import UserError

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
# Every integer up to here is a float32 and so is every sum on the way; 2^24 + 1 is not.
FLOAT32_EXACT = 2**24
MULTIPLIER_BITS = 22
# A product below 2^53 shifted by more than 54 bits is 0 in any case, and int64 has only 63.
LARGEST_SHIFT = 62


@dataclass(frozen=True)
class Steps:
    """The integers that a value may be rounded to, from `low` to `high`."""

    low: int
    high: int

    @property
    def largest(self) -> int:
        """The largest magnitude: what an accumulator must be able to add up."""
        return max(-self.low, self.high)

    def hold(self, values: Tensor) -> Tensor:
        """`values` clamped to the range."""
        return values.clamp(self.low, self.high)


def weight_steps(bits: int) -> Steps:
    """From -(2^(bits-1) - 1) to the same above zero."""
    last = 2 ** (bits - 1) - 1
    return Steps(-last, last)


def activation_steps(bits: int, unsigned: bool = False) -> Steps:
    """From -2^(bits-1) to 2^(bits-1) - 1, or from 0 to 2^bits - 1 where nothing is negative."""
    return Steps(0, 2**bits - 1) if unsigned else Steps(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


INT8 = activation_steps(8)


def symmetric_scale(max_abs: float, of: str, last_step: int = INT8.high) -> float:
    """last_step / max|x|: the scale that puts the largest magnitude on the last integer step.

    Raises UserError, naming what the values are `of`, when there is no such scale: all values
    zero, infinite or not a number.
    """
    if not (math.isfinite(max_abs) and max_abs > 0):
        raise UserError(
            f"{of} have no int8 scale, as their largest magnitude is {max_abs}; "
            "check the dataset and train the network again"
        )
    return last_step / max_abs


def to_steps(values: Tensor, scale: float | Tensor, steps: Steps) -> Tensor:
    """round(scale · values), clamped to `steps`: integer-valued float64, same shape.

    The product is float64, halves are rounded to even.
    """
    return (values.double() * scale).round_().clamp_(steps.low, steps.high)


def to_int32(values: Tensor, scale: float | Tensor) -> Tensor:
    """round(scale · values), clamped to int32; int32, same shape.

    In float64, where 2^31 - 1 is a number; float32 would round it up to 2^31 and overflow.
    """
    steps = torch.round(values.double() * scale)
    return steps.clamp(INT32_MIN, INT32_MAX).to(torch.int32)


@dataclass(frozen=True)
class Requantization:
    """m / 2^n for each output channel: int64 [out], with m < 2^22 (see above)."""

    multiplier: Tensor
    shift: Tensor

    @classmethod
    def nearest(cls, factors: Tensor, of: str) -> "Requantization":
        """The closest to `factors`, float64 [out]; UserError where one is not between 0 and 2^20.

        `of` names the layer.
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
        """The same with its tensors on the CPU."""
        return Requantization(self.multiplier.cpu(), self.shift.cpu())

    @property
    def factor(self) -> Tensor:
        """m / 2^n as float64 [out], without a rounding."""
        return torch.ldexp(self.multiplier.double(), -self.shift)

    def in_float64(self, accumulator: Tensor, steps: Steps) -> Tensor:
        """round(m · accumulator / 2^n), clamped: whole float64, channels in dimension 1."""
        return to_steps(accumulator, along_channels(self.factor, accumulator), steps)

    def in_integers(self, accumulator: Tensor, steps: Steps) -> Tensor:
        """The same for an int32 `accumulator`, by int64 products and shifts alone; int64."""
        product = accumulator.long() * along_channels(self.multiplier, accumulator)
        shift = along_channels(self.shift.clamp(max=LARGEST_SHIFT), accumulator)
        odd = (product >> shift) & 1
        half = torch.ones_like(shift) << (shift - 1)
        return steps.hold((product + (half - 1) + odd) >> shift)


def along_channels(values: Tensor, like: Tensor) -> Tensor:
    """`values` [channels] shaped so as to meet dimension 1 of `like` [n, channels, …]."""
    return values.view(-1, *[1] * (like.dim() - 2))
