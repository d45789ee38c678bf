"""The arithmetic of symmetric quantization: levels, scales, rounded weights, requantization.

A scale is the number of integer levels per unit: q = round(s · x), so x ≈ q / s. Symmetric means
that zero maps to zero, and that one scale serves a whole tensor (or one row of weights). With s =
127 / max|x| the largest value becomes ±127, and nothing is clipped (Jacob et al. 2018,
"Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference"; the
scale there is the reciprocal, the step size). For b bits, 127 becomes qmax = 2^(b-1) - 1.

Requantization turns an int32 accumulator into few bits by one rule: the factor o is replaced by m /
2^n with an integer m ≤ 2^22, and the product with the accumulator is rounded half to even. A
product of at most 2^31 · 2^22 is exact in the 53 bits of a float64. So a float64 product (used for
floats) and an int64 product with a shift (used for integers) always give the same integer. The
relative error of m / 2^n is at most 2^-22, which is 0.00003 levels at level 127.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from scaling.config.scheme import Scheme
from scaling.core.errors import UserError

Layer = nn.Conv2d | nn.Linear
WORD_BYTES = 4
"""Bytes of an int32 bias, a scale, or a requantization's multiplier (22 bits) and shift."""
MULTIPLIER_BITS = 22
# A product below 2^53 shifted by more than 54 bits is 0 in any case, and int64 has only 63.
LARGEST_SHIFT = 62


def qmax(bits: int) -> int:
    """Return the largest signed integer of `bits` bits; the smallest is -qmax(bits) - 1."""
    return int(2 ** (bits - 1)) - 1


def symmetric_scale(max_abs: float, of: str, bits: int = 8) -> float:
    """Return the scale qmax / max|x|, which maps the largest magnitude to the last level.

    UserError, which calls the values `of`, if `max_abs` is not positive and finite.
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
    """Return a layer's weights as int8, and their scales as float64 [outputs, 1, …].

    No weight is clipped. With one scale per tensor, all returned scales are equal. With one per
    channel, a channel of zeros has the scale of the whole tensor. Raises UserError, with the
    layer's `name`, if all weights are zero.
    """
    bits = scheme.weight_bits
    largest = layer.weight.double().abs().amax(dim=[*range(1, layer.weight.dim())], keepdim=True)
    whole = symmetric_scale(largest.max().item(), f"the weights of {name}", bits)
    scales = torch.full_like(largest, whole)
    if scheme.weight_scales == "channel":
        scales = torch.where(largest > 0, qmax(bits) / largest, whole)
    return to_integers(layer.weight, scales, bits).to(torch.int8), scales


def packed_bytes(weight: Tensor, scales: Tensor, bits: int) -> int:
    """Return the bytes of weights of `bits` bits, an int32 bias per output, and distinct scales."""
    words = len(scales) + len(scales.unique())
    return math.ceil(weight.numel() * bits / 8) + WORD_BYTES * words


class Requantization(nn.Module):
    """Multiplies accumulators [batch, outputs, …] by `factors` (one, or [outputs]).

    Products are rounded and clamped to `bits` bits. Integers give int8 (int32 above 8 bits), by
    int64 products and shifts: each factor becomes m / 2^n, m ≤ 2^22. Floats with integer values
    give float64. UserError, which names the layer `of`, unless 0 < factor < 2^20.
    """

    def __init__(self, factors: Tensor | float, bits: int, of: str) -> None:
        super().__init__()
        factors = torch.as_tensor(factors, dtype=torch.float64).reshape(-1)
        if not bool(((factors > 0) & (factors < 2 ** (MULTIPLIER_BITS - 2))).all()):
            raise UserError(
                f"the outputs of {of} cannot be brought to few bits by a factor of "
                f"{factors.max().item():.3g}; train the network differently"
            )
        mantissa, exponent = torch.frexp(factors)
        self.bits, self.dtype = bits, torch.int8 if bits <= 8 else torch.int32
        self.multiplier = torch.round(mantissa * 2**MULTIPLIER_BITS).long()
        self.shift = MULTIPLIER_BITS - exponent.long()
        self.factor = torch.ldexp(self.multiplier.double(), -self.shift)
        """The factors m / 2^n as float64 [outputs], without rounding errors."""

    def forward(self, values: Tensor) -> Tensor:
        if values.is_floating_point():
            return to_integers(values, along_channels(self.factor, values), self.bits)
        product = values.long() * along_channels(self.multiplier, values)
        shift = along_channels(self.shift.clamp(max=LARGEST_SHIFT), values)
        half = torch.ones_like(shift) << (shift - 1)
        odd = (product >> shift).bitwise_and_(1)
        product.add_(odd).add_(half - 1).bitwise_right_shift_(shift)
        return product.clamp_(-qmax(self.bits) - 1, qmax(self.bits)).to(self.dtype)


def along_channels(channels: Tensor, values: Tensor) -> Tensor:
    """Return `channels` [c] as [c, 1, …], to broadcast along dimension 1 of `values` [n, c, …]."""
    return channels.to(values.device).view(-1, *[1] * (values.dim() - 2))


def integer_products(values: Tensor, weight: Tensor, convolution: dict[str, Any] | None) -> Tensor:
    """Return the sums of products of int8 values and weights: int32 [n, outputs, …].

    `weight` is [outputs, …]; `convolution` has stride and padding, or is None for a linear layer.
    PyTorch has no int8 convolution, so each patch of the input becomes a row of a matrix.
    """
    if convolution is None:
        return _multiply(values, weight)
    down, across = convolution["padding"]
    # Channels last, so that what is copied lies together.
    patches = functional.pad(values.permute(0, 2, 3, 1), (0, 0, across, across, down, down))
    for dimension, step in enumerate(convolution["stride"], start=1):
        patches = patches.unfold(dimension, weight.shape[dimension + 1], step)
    rows = patches.permute(0, 1, 2, 4, 5, 3).flatten(3)
    sums = _multiply(rows.flatten(0, 2), weight.permute(0, 2, 3, 1).flatten(1))
    # PyTorch's pooling of integers refuses another layout.
    return sums.view(*rows.shape[:3], -1).permute(0, 3, 1, 2).contiguous()


def _multiply(rows: Tensor, weight: Tensor) -> Tensor:
    """Return the product of int8 [n, inner] and int8 [outputs, inner]: int32 [n, outputs].

    Pads with zeros, as NVIDIA GPUs need more than 16 rows, and other sizes divisible by 8.
    """
    (n, inner), outputs = rows.shape, len(weight)
    if n < 17 or inner % 8:  # It copies in any case.
        rows = functional.pad(rows, (0, -inner % 8, 0, max(0, 17 - n)))
    columns = functional.pad(weight, (0, -inner % 8, 0, -outputs % 8)).T
    return torch._int_mm(rows, columns)[:n, :outputs]
