"""Rounding that looks at the inputs: its error against rounding to the nearest."""

import pytest
import torch
from torch import nn

from extras.bits.gptq import (
    InputMoments,
    bias_correction,
    compensate,
    input_rows,
    output_errors,
    round_weights,
)


def correlated(seed):
    """400 rows of 40 inputs that share a few causes, like neighbouring pixels; mean ≠ 0."""
    random = torch.Generator().manual_seed(seed)
    causes, mixing = (torch.randn(size, generator=random) for size in ((400, 10), (10, 40)))
    return causes @ mixing + 0.3 * torch.randn(400, 40, generator=random) + 1.0


def seen(inputs, received=None):
    moments = InputMoments()
    received = inputs if received is None else received
    for floats, other in zip(inputs.split(150), received.split(150), strict=True):
        moments.update(floats, other)
    return moments


def weights_and_scale(seed, bits, *, per_channel):
    weight = torch.randn(24, 40, generator=torch.Generator().manual_seed(100 + seed))
    largest = weight.abs().amax(dim=1) if per_channel else weight.abs().max()
    return weight, ((2 ** (bits - 1) - 1) / largest).double().reshape(-1, 1)


def nearest(weight, scale, bits):
    last = 2 ** (bits - 1) - 1
    return (weight.double() * scale).round().clamp(-last, last)


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("bits", [2, 3, 4, 8])
def test_outputs_are_never_further_off_than_with_the_nearest_levels(bits, per_channel):
    inputs = correlated(bits)
    weight, scale = weights_and_scale(bits, bits, per_channel=per_channel)
    integers = round_weights(seen(inputs).second(centred=False)[0], weight, scale, bits)
    assert integers.dtype == torch.int32 and integers.abs().max() <= 2 ** (bits - 1) - 1
    plain, ours = (
        (inputs.double() @ (weight - found / scale).T).norm().item()
        for found in (nearest(weight, scale, bits), integers)
    )
    assert ours <= (0.7 * plain if bits in (3, 4) else plain)


def test_uncorrelated_and_silent_inputs_give_the_nearest_levels():
    weight, scale = weights_and_scale(0, 4, per_channel=True)
    for moments in (torch.diag(torch.linspace(0.1, 7, 40)), torch.zeros(40, 40)):
        integers = round_weights(moments, weight, scale, 4)
        assert torch.equal(integers, nearest(weight, scale, 4).int())


def test_one_error_is_made_up_for_by_the_input_that_moves_with_it():
    # Two equal inputs see only the sum of their weights, 0.4 + 0.4: nearest gives 0, GPTQ 0 + 1.
    moments = torch.tensor([[1.0, 1.0], [1.0, 1.0]])
    assert round_weights(moments, torch.tensor([[0.4, 0.4]]), 1.0, 8).tolist() == [[0, 1]]


def test_the_column_of_the_largest_inputs_is_rounded_first():
    # The second input is twice the first. Rounded first, it leaves an error of 0.45 · 2, which a
    # step of the first takes back but for 0.1; the first, rounded first, would have none to take.
    moments = torch.tensor([[1.0, 2.0], [2.0, 4.0]])
    weight = torch.tensor([[0.0, 0.45]])
    integers = round_weights(moments, weight, 1.0, 8)
    assert integers.tolist() == [[1, 0]]
    assert output_errors(integers - weight, moments).item() == pytest.approx(0.01)


def test_a_corrected_bias_leaves_no_mean_shift_of_the_outputs():
    inputs, (weight, scale) = correlated(2), weights_and_scale(2, 3, per_channel=False)
    rounded = nearest(weight, scale, 3) / scale
    shift = inputs.double() @ (rounded - weight.double()).T
    assert shift.mean(dim=0).abs().max() > 0.1
    corrected = shift + bias_correction(weight, rounded, seen(inputs))
    assert corrected.mean(dim=0).abs().max() < 1e-9


def test_inputs_that_arrive_otherwise_ask_for_other_weights_and_another_bias():
    inputs = correlated(4)
    received = inputs + 0.3 + 0.5 * torch.randn(400, 40, generator=torch.Generator().manual_seed(7))
    weight, _ = weights_and_scale(4, 8, per_channel=False)
    moments = seen(inputs, received)
    exact = inputs.double() @ weight.double().T

    def error(other):
        bias = bias_correction(weight, other, moments)
        return (received.double() @ other.double().T + bias - exact).norm().item()

    covariance, errors = moments.second(centred=True)
    ours = error(compensate(weight, errors, covariance))
    assert ours < 0.95 * error(weight)
    # Only the damping keeps it from the least of all errors, that of a regression.
    with_ones = torch.cat([received, torch.ones(400, 1)], dim=1).double()
    regression = torch.linalg.lstsq(with_ones, exact).solution[:-1].T
    assert error(regression) <= ours < 1.05 * error(regression)
    # Inputs that arrive unchanged leave the weights alone.
    covariance, errors = seen(inputs).second(centred=True)
    assert torch.equal(compensate(weight, errors, covariance), weight.double())


@torch.no_grad()
@pytest.mark.parametrize(
    "layer", [nn.Linear(12, 7), nn.Conv2d(3, 5, 3), nn.Conv2d(3, 5, 3, stride=2, padding=1)]
)
def test_rows_of_inputs_times_rows_of_weights_are_the_layers_outputs(layer):
    linear = isinstance(layer, nn.Linear)
    inputs = torch.randn((4, 12) if linear else (4, 3, 9, 9))
    found = input_rows(layer, inputs) @ layer.weight.flatten(1).T + layer.bias
    expected = layer(inputs)
    expected = expected if linear else expected.permute(0, 2, 3, 1).flatten(0, 2)
    torch.testing.assert_close(found, expected)
