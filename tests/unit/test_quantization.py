"""Int8 arithmetic on tensors small enough to follow by hand."""

import math

import pytest
import torch

from scaling.errors import UserError
from scaling.quantization import symmetric_scale, to_int8, to_int32


def test_the_largest_magnitude_lands_on_step_127_and_nothing_is_clipped() -> None:
    values = torch.tensor([-2.54, -1.0, 0.0, 0.52, 2.0])
    scale = symmetric_scale(2.54, "the values")
    assert scale == 50
    assert to_int8(values, scale).tolist() == [-127, -50, 0, 26, 100]


def test_values_beyond_the_calibrated_range_stop_at_the_int8_limits() -> None:
    assert to_int8(torch.tensor([-70.0, -63.9, 64.0, 1e6]), 2.0).tolist() == [-128, -128, 127, 127]


def test_halves_are_rounded_to_the_even_step() -> None:
    assert to_int8(torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5]), 1.0).tolist() == [0, 2, 2, 0, -2]


def test_a_bias_beyond_int32_saturates_instead_of_wrapping() -> None:
    values = torch.tensor([1.26, -3e9, 3e9, 2147483520.0])
    assert to_int32(values, 10.0).tolist() == [13, -2147483648, 2147483647, 2147483647]
    assert to_int32(values[:1], 10.0).dtype == torch.int32


@pytest.mark.parametrize("max_abs", [0.0, math.inf, math.nan])
def test_values_without_a_scale_are_refused_by_name(max_abs: float) -> None:
    with pytest.raises(UserError, match=r"the weights of fc1 have no int8 scale"):
        symmetric_scale(max_abs, "the weights of fc1")
