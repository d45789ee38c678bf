"""The arithmetic of symmetric int8 quantization: scales, and rounding to integers.

A scale counts integer steps per unit: q = round(s · x), so x ≈ q / s. Symmetric means that zero
maps to zero and one scale serves a whole tensor. With s = 127 / max|x| the largest value lands on
±127 and nothing is clipped (Jacob et al. 2018, "Quantization and Training of Neural Networks for
Efficient Integer-Arithmetic-Only Inference"; there the scale is the reciprocal, the step's size).
"""

import math

import torch
from torch import Tensor

from scaling.errors import UserError

INT8_MIN, INT8_MAX = -128, 127
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
# Every integer up to here is a float32 and so is every sum on the way; 2^24 + 1 is not.
FLOAT32_EXACT = 2**24


def symmetric_scale(max_abs: float, of: str) -> float:
    """127 / max|x|: the scale that puts the largest magnitude on the last integer step.

    Raises UserError, naming what the values are `of`, when there is no such scale: all values
    zero, infinite or not a number.
    """
    if not (math.isfinite(max_abs) and max_abs > 0):
        raise UserError(
            f"{of} have no int8 scale, as their largest magnitude is {max_abs}; "
            "check the dataset and train the network again"
        )
    return INT8_MAX / max_abs


def to_int8(values: Tensor, scale: float) -> Tensor:
    """round(scale · values), clamped to [-128, 127]: integer-valued float64, same shape.

    The one requantization rule of the simulation: a float64 product, halves rounded to even.
    """
    return torch.round(values.double() * scale).clamp(INT8_MIN, INT8_MAX)


def to_int32(values: Tensor, scale: float) -> Tensor:
    """round(scale · values), clamped to int32; int32, same shape.

    In float64, where 2^31 - 1 is a number; float32 would round it up to 2^31 and overflow.
    """
    steps = torch.round(values.double() * scale)
    return steps.clamp(INT32_MIN, INT32_MAX).to(torch.int32)
