"""Quantized arithmetic on tensors small enough to follow by hand."""

import math
from fractions import Fraction

import pytest
import torch
from torch.nn import functional

from scaling.core.errors import UserError
from scaling.quantization.integers import (
    Requantization,
    integer_products,
    symmetric_scale,
    to_integers,
)


def test_floats_round_half_to_even_and_clip_at_last_level():
    scale = symmetric_scale(2.54, "the values")
    assert scale == 50
    values = torch.tensor([-2.54, -1.0, 0.0, 0.52, 2.0, 2.56, -9.0])
    assert to_integers(values, scale, 8).tolist() == [-127, -50, 0, 26, 100, 127, -128]
    halves = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5])
    assert to_integers(halves, 1.0, 8).tolist() == [0, 2, 2, 0, -2]
    assert to_integers(9 * halves, 1.0, 3).tolist() == [3, 3, 3, -4, -4]
    # A bias beyond int32 saturates instead of wrapping.
    biases = torch.tensor([1.26, -3e9, 2147483520.0])
    assert to_integers(biases, 10.0, 32).tolist() == [13, -(2**31), 2**31 - 1]


def test_zero_scale_and_unrepresentable_factor_are_refused():
    for max_abs in (0.0, math.inf, math.nan):
        with pytest.raises(UserError, match=r"the weights of fc1 have no int8 scale"):
            symmetric_scale(max_abs, "the weights of fc1")
    for factor in (0.0, -1.0, math.nan, math.inf, 2.0**20):
        with pytest.raises(UserError, match="the outputs of fc1 cannot be brought to few bits"):
            Requantization(factor, 8, "fc1")


@pytest.mark.parametrize("factor", [1.27e-3, 2.0**-7, 0.5, 1.75, 6e-6, 1e-14, 1 - 2**-30])
def test_requantization_is_exact_product_rounded_half_to_even(
    factor,
):
    generator = torch.Generator().manual_seed(0)
    spread = torch.randint(-(2**31), 2**31, (4000,), generator=generator)
    near = torch.arange(-400, 401) * 64  # with a factor of 2^-7 every other one is a half
    accumulator = torch.cat([spread, near, torch.tensor([-(2**31), 2**31 - 1])]).to(torch.int32)
    rule = Requantization(factor, 32, "fc1")
    exact = Fraction(int(rule.multiplier[0]), 2 ** int(rule.shift[0]))
    assert rule.multiplier <= 2**22 and abs(exact / Fraction(factor) - 1) <= 2**-22
    products = [round(int(value) * exact) for value in accumulator]
    assert rule(accumulator.unsqueeze(1)).flatten().tolist() == [
        min(max(product, -(2**31)), 2**31 - 1) for product in products
    ]
    wide = Requantization(factor, 54, "fc1")
    assert wide(accumulator.double().unsqueeze(1)).flatten().tolist() == products


def integers(low, high, *shape):
    made = torch.Generator().manual_seed(sum(shape))
    return torch.randint(low, high + 1, shape, generator=made)


# Sizes that no tensor core has, extremes that 16 bits would not hold, and a stride.
@pytest.mark.parametrize(
    ("shape", "kernel", "convolution"),
    [
        ((3, 30), (10, 30), None),
        ((40, 64), (16, 64), None),
        ((2, 3, 7, 5), (6, 3, 3, 3), {"stride": (1, 1), "padding": (1, 1)}),
        ((2, 8, 9, 9), (4, 8, 3, 1), {"stride": (2, 1), "padding": (1, 0)}),
    ],
)
def test_sums_are_those_of_int64(shape, kernel, convolution):
    values, weight = integers(-128, 127, *shape), integers(-127, 127, *kernel)
    values[0], weight[0] = 127, 127
    found = integer_products(values.to(torch.int8), weight.to(torch.int8), convolution)
    if convolution is None:
        exact = values @ weight.T
    else:
        exact = functional.conv2d(values.double(), weight.double(), **convolution)
    assert found.dtype == torch.int32 and found.abs().max() > 2**15
    assert torch.equal(found.double(), exact.double())
