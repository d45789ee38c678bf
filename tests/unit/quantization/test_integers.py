"""Quantized arithmetic on tensors that can be computed by hand."""

import math
from fractions import Fraction

import pytest
import torch

from scaling.core.errors import UserError
from scaling.quantization.integers import fixed_point, symmetric_scale, to_integers


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
            fixed_point(torch.tensor([factor]).double(), "fc1")


@pytest.mark.parametrize("factor", [1.27e-3, 2.0**-7, 0.5, 1.75, 6e-6, 1e-14, 1 - 2**-30])
def test_output_factor_gives_the_exact_product_rounded(factor):
    generator = torch.Generator().manual_seed(0)
    spread = torch.randint(-(2**31), 2**31, (4000,), generator=generator)
    near = torch.arange(-400, 401) * 64  # with a factor of 2^-7 every other one is a half
    accumulator = torch.cat([spread, near, torch.tensor([-(2**31), 2**31 - 1])])
    exact = Fraction(fixed_point(torch.tensor([factor]).double(), "fc1").item())
    assert exact.numerator <= 2**22 and abs(exact / Fraction(factor) - 1) <= 2**-22
    products = [round(int(value) * exact) for value in accumulator]
    assert to_integers(accumulator, float(exact), 54).tolist() == products
