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


TYPES, BOTH, SMALL = (torch.float32, torch.bfloat16), (True, False), (3, 24, 7, 5)
# Shapes decide over blocks, the other options over what one computes.
KINDS = [
    *itertools.product(TYPES, BOTH, BOTH, (1, 2), [SMALL]),
    *itertools.product(TYPES, [True], BOTH, [2], [(9, 128, 6, 6), (2, 1, 90, 50)]),
]


@pytest.mark.parametrize(("dtype", "rectifies", "added", "uses", "shape"), KINDS)
def test_results_gradients_and_statistics_are_those_of_batch_norm(
    dtype, rectifies, added, uses, shape
):
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(shape[1], device=DEVICE)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    reference = copy.deepcopy(norm).double()
    x = random(*shape, dtype=dtype, scale=3.0, shift=2.0)
    residual = random(*shape, dtype=dtype) if added else None
    weights = [random(*shape, dtype=dtype) for _ in range(uses)]

    fused = FusedNorm(norm, rectifies, torch.zeros(SUMS * shape[1], device=DEVICE))
    results = fused(x, residual)
    sum((y * w).double().sum() for y, w in zip(results, weights, strict=False)).backward()

    x64, residual64 = (
        None if leaf is None else leaf.detach().double().requires_grad_() for leaf in (x, residual)
    )
    wanted = reference(x64) if residual64 is None else reference(x64) + residual64
    wanted = functional.relu(wanted) if rectifies else wanted
    (wanted * sum(weights).double()).sum().backward()

    for result in results:
        assert near(result, wanted, dtype)
    assert near(x.grad, x64.grad, dtype)
    assert near(norm.weight.grad, reference.weight.grad, dtype)
    assert near(norm.bias.grad, reference.bias.grad, dtype)
    assert near(norm.running_mean, reference.running_mean, dtype)
    assert near(norm.running_var, reference.running_var, dtype)
    if residual is not None:
        assert near(residual.grad, residual64.grad, dtype)


def test_a_value_that_is_no_number_is_not_rectified_away():
    x = torch.ones(2, 8, 5, 5, device=DEVICE)
    x[0, 3, 0, 0] = torch.nan
    fused = FusedNorm(nn.BatchNorm2d(8, device=DEVICE), True, torch.zeros(SUMS * 8, device=DEVICE))
    assert fused(x)[0].isnan().any(dim=(0, 2, 3)).tolist() == [channel == 3 for channel in range(8)]


def test_activations_in_another_order_are_put_in_rows():
    x = torch.randn(2, 8, 5, 5, device=DEVICE)
    fused = FusedNorm(nn.BatchNorm2d(8, device=DEVICE), True, torch.zeros(SUMS * 8, device=DEVICE))
    wanted = functional.relu(nn.BatchNorm2d(8, device=DEVICE)(x))
    assert torch.allclose(fused(x)[0], wanted, atol=1e-5)
