"""The arithmetic of symmetric quantization: levels, scales, rounded weights, output factors.

A scale is the number of integer levels per unit: q = round(s · x), so x ≈ q / s. Zero maps to zero.
With s = 127 / max|x| of a tensor, or of an output channel, the largest value becomes ±127, and
nothing is clipped. Jacob et al. 2018, "Quantization and Training of Neural Networks for Efficient
Integer-Arithmetic-Only Inference", define the scale as the reciprocal. For b bits, 127 becomes
2^(b-1) - 1. Integers are computed as float64, which holds all integers of 53 bits exactly.
"""

import math

import torch
from torch import Tensor, nn

from scaling.config.scheme import Scheme
from scaling.core.errors import UserError

Layer = nn.Conv2d | nn.Linear
WORD_BYTES = 4
"""Bytes of an int32 bias, a scale, or an output factor (a multiplier of 22 bits and a shift)."""
MULTIPLIER_BITS = 22


def qmax(bits: int) -> int:
    """Return the largest signed integer of `bits` bits; the smallest is -qmax(bits) - 1."""
    return int(2 ** (bits - 1)) - 1


def symmetric_scale(max_abs: float, of: str, bits: int = 8) -> float:
    """Return qmax / `max_abs`, the scale that maps the largest magnitude to the last level.

    UserError, which names the values `of`, if `max_abs` is not positive and finite.
    """
    if not (math.isfinite(max_abs) and max_abs > 0):
        raise UserError(
            f"{of} have no int8 scale, as their largest magnitude is {max_abs}; "
            "check the dataset and train the network again"
        )
    return qmax(bits) / max_abs


def to_integers(values: Tensor, scale: float | Tensor, bits: int) -> Tensor:
    """Return scale · values, rounded half to even, clamped to `bits` bits: float64, same shape."""
    return (values.double() * scale).round_().clamp_(-qmax(bits) - 1, qmax(bits))


@torch.no_grad()
def round_weights(name: str, layer: Layer, scheme: Scheme) -> tuple[Tensor, Tensor]:
    """Return a layer's weights as integers, and their scales [outputs, 1, …], both float64.

    With one scale per tensor, all scales are equal. With one per channel, a channel of zeros has
    the scale of the whole tensor. UserError, with the layer's `name`, if all weights are zero.
    """
    bits = scheme.weight_bits
    largest = layer.weight.double().abs().amax(dim=[*range(1, layer.weight.dim())], keepdim=True)
    whole = symmetric_scale(largest.max().item(), f"the weights of {name}", bits)
    scales = torch.full_like(largest, whole)
    if scheme.weight_scales == "channel":
        scales = torch.where(largest > 0, qmax(bits) / largest, whole)
    return to_integers(layer.weight, scales, bits), scales


def packed_bytes(weight: Tensor, scales: Tensor, bits: int) -> int:
    """Return the bytes of weights of `bits` bits, an int32 bias per output, and distinct scales."""
    words = len(scales) + len(scales.unique())
    return math.ceil(weight.numel() * bits / 8) + WORD_BYTES * words


def fixed_point(factors: Tensor, of: str) -> Tensor:
    """Return output factors, float64 [outputs], rounded to m / 2^n with an integer m ≤ 2^22.

    Integer hardware multiplies an int32 accumulator by m and shifts the product by n bits. The
    product has at most 53 bits, so float64 gives the same result. UserError, which names the layer
    `of`, unless 0 < factor < 2^20.
    """
    if not bool(((factors > 0) & (factors < 2 ** (MULTIPLIER_BITS - 2))).all()):
        raise UserError(
            f"the outputs of {of} cannot be brought to few bits by a factor of "
            f"{factors.max().item():.3g}; train the network differently"
        )
    mantissa, exponent = torch.frexp(factors)
    multiplier = torch.round(mantissa * 2**MULTIPLIER_BITS)
    return torch.ldexp(multiplier, exponent.long() - MULTIPLIER_BITS)


def along_channels(channels: Tensor, values: Tensor) -> Tensor:
    """Return `channels` [c] as [c, 1, …], to broadcast along dimension 1 of `values` [n, c, …]."""
    return channels.view(-1, *[1] * (values.dim() - 2))
