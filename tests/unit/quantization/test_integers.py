"""Quantized arithmetic on tensors small enough to follow by hand."""

import math
from fractions import Fraction

import pytest
import torch

from scaling.core.errors import UserError
from scaling.quantization.integers import (
    INT8,
    Levels,
    Requantization,
    activation_levels,
    layer_bytes,
    pack,
    symmetric_scale,
    to_int32,
    to_levels,
    weight_levels,
)


def test_the_largest_magnitude_lands_on_step_127_and_nothing_is_clipped() -> None:
    values = torch.tensor([-2.54, -1.0, 0.0, 0.52, 2.0])
    scale = symmetric_scale(2.54, "the values")
    assert scale == 50
    assert to_levels(values, scale, INT8).tolist() == [-127, -50, 0, 26, 100]


def test_values_beyond_the_calibrated_range_stop_at_the_int8_limits() -> None:
    values = torch.tensor([-70.0, -63.9, 64.0, 1e6])
    assert to_levels(values, 2.0, INT8).tolist() == [-128, -128, 127, 127]


def test_halves_are_rounded_to_the_even_step() -> None:
    values = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5])
    assert to_levels(values, 1.0, INT8).tolist() == [0, 2, 2, 0, -2]


def test_the_steps_of_fewer_bits() -> None:
    assert weight_levels(8) == Levels(-127, 127) and weight_levels(2) == Levels(-1, 1)
    assert activation_levels(8) == Levels(-128, 127) and activation_levels(3) == Levels(-4, 3)
    assert activation_levels(4, unsigned=True) == Levels(0, 15)
    assert activation_levels(4).amax == 8 and activation_levels(4, unsigned=True).amax == 15


def test_a_bias_beyond_int32_saturates_instead_of_wrapping() -> None:
    values = torch.tensor([1.26, -3e9, 3e9, 2147483520.0])
    assert to_int32(values, 10.0).tolist() == [13, -2147483648, 2147483647, 2147483647]
    assert to_int32(values[:1], 10.0).dtype == torch.int32


@pytest.mark.parametrize("max_abs", [0.0, math.inf, math.nan])
def test_values_without_a_scale_are_refused_by_name(max_abs: float) -> None:
    with pytest.raises(UserError, match=r"the weights of fc1 have no int8 scale"):
        symmetric_scale(max_abs, "the weights of fc1")


def test_a_requantization_is_within_2_to_the_minus_22_of_its_factor_and_has_22_bits() -> None:
    factors = torch.tensor([1.27e-3, 0.5, 1 - 2**-30, 3e-9, 777.7], dtype=torch.float64)
    rule = Requantization.nearest(factors, "fc1")
    assert rule.multiplier.max() < 2**22 and rule.multiplier.min() >= 2**21
    assert ((rule.factor / factors - 1).abs() <= 2**-22).all()


@pytest.mark.parametrize("factor", [0.0, -1.0, math.nan, math.inf, 2.0**20])
def test_a_factor_that_no_shift_can_stand_for_is_refused(factor: float) -> None:
    with pytest.raises(UserError, match="the outputs of fc1 cannot be brought to few bits"):
        Requantization.nearest(torch.tensor([factor], dtype=torch.float64), "fc1")


@pytest.mark.parametrize("factor", [1.27e-3, 2.0**-7, 0.5, 1.75, 6e-6, 1e-14])
def test_requantization_in_integers_and_in_float64_is_the_exact_product_rounded_half_to_even(
    factor: float,
) -> None:
    generator = torch.Generator().manual_seed(0)
    spread = torch.randint(-(2**31), 2**31, (4000,), generator=generator)
    near = torch.arange(-400, 401) * 64  # with a factor of 2^-7 every other one is a half
    accumulator = torch.cat([spread, near, torch.tensor([-(2**31), 2**31 - 1])]).to(torch.int32)
    rule = Requantization.nearest(torch.tensor([factor], dtype=torch.float64), "fc1")
    wide = Levels(-(2**62), 2**62)
    by_shift = rule.in_integers(accumulator.unsqueeze(1), wide).flatten()
    by_float = rule.in_float64(accumulator.unsqueeze(1), Levels(-(2**53), 2**53)).flatten()
    exact = Fraction(int(rule.multiplier[0]), 2 ** int(rule.shift[0]))
    assert by_shift.tolist() == [round(int(value) * exact) for value in accumulator]
    assert torch.equal(by_float.long(), by_shift)


def test_each_channel_has_its_own_requantization() -> None:
    rule = Requantization.nearest(torch.tensor([0.5, 0.25], dtype=torch.float64), "conv1")
    accumulator = torch.full((1, 2, 1, 2), 100, dtype=torch.int32)
    assert rule.in_integers(accumulator, INT8).tolist() == [[[[50, 50]], [[25, 25]]]]
    assert rule.in_float64(accumulator, INT8).tolist() == [[[[50, 50]], [[25, 25]]]]


def unpack(packed: bytes, bits: int, shape: tuple[int, ...]) -> torch.Tensor:
    """Read numbers of so many bits in two's complement, one after the other."""
    text = "".join(f"{byte:08b}" for byte in packed)
    count = math.prod(shape)
    unsigned = [int(text[bits * place : bits * (place + 1)], 2) for place in range(count)]
    signed = [value - 2**bits * (value >= 2 ** (bits - 1)) for value in unsigned]
    return torch.tensor(signed).reshape(shape)


@pytest.mark.parametrize("bits", range(2, 9))
def test_packed_weights_come_back_and_leave_no_gap(bits: int) -> None:
    steps = weight_levels(bits)
    generator = torch.Generator().manual_seed(bits)
    weight = torch.randint(steps.low, steps.high + 1, (3, 5, 7), generator=generator)
    packed = pack(weight.to(torch.int8), bits)
    assert len(packed) == -(-3 * 5 * 7 * bits // 8)
    assert torch.equal(unpack(packed, bits, (3, 5, 7)), weight)


def test_a_layer_is_its_packed_weights_an_int32_bias_for_each_output_and_its_scales() -> None:
    weight = torch.zeros(10, 84, dtype=torch.int8)
    assert layer_bytes(weight, 8, scales=1) == 840 + 40 + 4
    assert layer_bytes(weight, 4, scales=10) == 420 + 40 + 40
