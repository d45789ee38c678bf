"""Fused norms against batch norm, addition and rectifier of PyTorch in float64."""

import copy
import itertools

import pytest
import torch
from torch import nn
from torch.nn import functional

from extras.kernels.fused import SUMS, FusedNorm
from fused_kernels import DEVICE

pytestmark = pytest.mark.usefixtures("interpreter")

ERROR = {torch.float32: 1e-5, torch.bfloat16: 1e-2}


def near(found, wanted, dtype):
    return (found.double() - wanted).norm() <= ERROR[dtype] * wanted.norm()


def random(*shape, dtype, scale=1.0, shift=0.0):
    values = (torch.randn(*shape, device=DEVICE) * scale + shift).to(dtype)
    return values.to(memory_format=torch.channels_last).requires_grad_()


def fused_norm(channels):
    norm = nn.BatchNorm2d(channels, device=DEVICE)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    reference = copy.deepcopy(norm).double()
    return FusedNorm(norm, torch.zeros(SUMS * channels, device=DEVICE)), reference


TYPES, RESIDUALS = (torch.float32, torch.bfloat16), ("none", "added", "normalized")
SMALL = (3, 24, 7, 5)
# Shapes decide over blocks, the other options over what one computes.
KINDS = [
    *itertools.product(TYPES, RESIDUALS, (1, 2), [SMALL]),
    *itertools.product(TYPES, RESIDUALS, [2], [(9, 128, 6, 6)]),
    # The gradients of a single channel's norm cancel out, in bf16 to few digits.
    *itertools.product(TYPES, RESIDUALS[:2], [2], [(2, 1, 90, 50)]),
]


@pytest.mark.parametrize(("dtype", "kind", "uses", "shape"), KINDS)
def test_results_gradients_and_statistics_are_those_of_batch_norm(dtype, kind, uses, shape):
    torch.manual_seed(0)
    norms = [fused_norm(shape[1]) for _ in range(2 if kind == "normalized" else 1)]
    leaves = [random(*shape, dtype=dtype, scale=3.0, shift=2.0)]
    if kind != "none":
        leaves.append(random(*shape, dtype=dtype))
    weights = [random(*shape, dtype=dtype) for _ in range(uses)]

    results = norms[0][0](*leaves, *(fused for fused, _ in norms[1:]))
    sum((y * w).double().sum() for y, w in zip(results, weights, strict=False)).backward()

    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    each = [reference(leaf) for (_, reference), leaf in zip(norms, exact, strict=False)]
    wanted = functional.relu(sum(each + exact[len(each) :]))
    (wanted * sum(weights).double()).sum().backward()

    for result in results:
        assert near(result, wanted, dtype)
    for leaf, other in zip(leaves, exact, strict=True):
        assert near(leaf.grad, other.grad, dtype)
    for (norm, _), reference in norms:
        assert near(norm.weight.grad, reference.weight.grad, dtype)
        assert near(norm.bias.grad, reference.bias.grad, dtype)
        assert near(norm.running_mean, reference.running_mean, dtype)
        assert near(norm.running_var, reference.running_var, dtype)


def test_a_value_that_is_no_number_is_not_rectified_away():
    x = torch.ones(2, 8, 5, 5, device=DEVICE)  # Not in the order of channels-last images.
    x[0, 3, 0, 0] = torch.nan
    fused, _ = fused_norm(8)
    assert fused(x)[0].isnan().any(dim=(0, 2, 3)).tolist() == [channel == 3 for channel in range(8)]
