"""Sums of products of 8-bit integers, against int64 arithmetic; and their speed, by layer."""

import pytest
import torch
from torch.nn import functional

from scaling.quantization.int8_products import integer_products


def integers(low, high, *shape):
    made = torch.Generator().manual_seed(sum(shape))
    return torch.randint(low, high + 1, shape, generator=made)


# Sizes that no tensor core has, extremes that 16 bits would not hold, and a stride.
@pytest.mark.parametrize(("low", "high", "dtype"), [(-128, 127, torch.int8), (0, 255, torch.int32)])
@pytest.mark.parametrize(
    ("shape", "kernel", "convolution"),
    [
        ((3, 30), (10, 30), None),
        ((40, 64), (16, 64), None),
        ((2, 3, 7, 5), (6, 3, 3, 3), {"stride": (1, 1), "padding": (1, 1)}),
        ((2, 8, 9, 9), (4, 8, 3, 1), {"stride": (2, 1), "padding": (1, 0)}),
        ((1, 4, 6, 6), (8, 4, 1, 1), {"stride": (2, 2), "padding": (0, 0)}),
    ],
)
def test_sums_are_those_of_int64(low, high, dtype, shape, kernel, convolution):
    values, weight = integers(low, high, *shape), integers(-127, 127, *kernel)
    values[0], weight[0] = high, 127
    found = integer_products(values.to(dtype), weight.to(torch.int8), convolution)
    if convolution is None:
        exact = values @ weight.T
    else:
        exact = functional.conv2d(values.double(), weight.double(), **convolution)
    assert found.dtype == torch.int32 and found.abs().max() > 2**15
    assert torch.equal(found.double(), exact.double())
