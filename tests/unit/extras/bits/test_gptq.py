"""Rounding that looks at the inputs: its error against rounding to the nearest."""

import pytest
import torch
from torch import nn

from extras.bits.gptq import (
    ByMoments,
    InputMoments,
    bias_correction,
    compensate,
    input_rows,
    least_output_error,
    output_errors,
    round_weights,
)
from scaling.config.scheme import Scheme
from scaling.models.tutorial_cnn import tutorial_cnn
from scaling.quantization.calibration import calibrate, count_magnitudes, observer_points
from scaling.quantization.network import exactness, quantize
from scaling.quantization.rounding import NEAREST, nearest


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


def weights_and_scales(seed, bits, *, per_channel):
    weight = torch.randn(24, 40, generator=torch.Generator().manual_seed(100 + seed)).double()
    largest = weight.abs().amax(dim=1) if per_channel else weight.abs().max().expand(24)
    return weight, (2 ** (bits - 1) - 1) / largest


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("bits", [2, 3, 4, 8])
def test_outputs_are_never_further_off_than_with_the_nearest_levels(bits, per_channel):
    inputs = correlated(bits)
    weight, scales = weights_and_scales(bits, bits, per_channel=per_channel)
    integers = round_weights(seen(inputs).covariances()[0], weight, scales, bits)
    assert torch.equal(integers, integers.round()) and integers.abs().max() <= 2 ** (bits - 1) - 1
    plain, ours = (
        (inputs.double() @ (weight - found / scales.unsqueeze(1)).T).norm().item()
        for found in (nearest(weight, scales, bits), integers)
    )
    assert ours <= (0.7 * plain if bits in (3, 4) else plain)


def test_uncorrelated_and_silent_inputs_give_the_nearest_levels():
    weight, scales = weights_and_scales(0, 4, per_channel=True)
    for moments in (torch.diag(torch.linspace(0.1, 7, 40)), torch.zeros(40, 40)):
        integers = round_weights(moments.double(), weight, scales, 4)
        assert torch.equal(integers, nearest(weight, scales, 4))


@pytest.mark.parametrize(
    ("inputs", "weight", "rounded"),
    [
        # Two equal inputs see only the sum of their weights, 0.8: nearest gives 0, GPTQ 0 + 1.
        ([1.0, 1.0], [0.4, 0.4], [0, 1]),
        # The second input is twice the first. Rounded first, it leaves an error of 0.45 · 2, which
        # a step of the first takes back but for 0.1; the first would have none to take.
        ([1.0, 2.0], [0.0, 0.45], [1, 0]),
    ],
)
def test_an_error_is_made_up_for_by_the_input_that_moves_with_it(inputs, weight, rounded):
    received = torch.tensor([inputs], dtype=torch.float64)
    weights, scales = torch.tensor([weight]).double(), torch.ones(1).double()
    integers = round_weights(received.T @ received, weights, scales, 8)
    assert integers.tolist() == [rounded]


def test_inputs_that_arrive_otherwise_ask_for_other_weights_and_another_bias():
    inputs = correlated(4)
    received = inputs + 0.3 + 0.5 * torch.randn(400, 40, generator=torch.Generator().manual_seed(7))
    weight, _ = weights_and_scales(4, 8, per_channel=False)
    moments = seen(inputs, received)
    exact = inputs.double() @ weight.T

    def error(other):
        bias = bias_correction(weight, other, moments)
        return (received.double() @ other.T + bias - exact).norm().item()

    covariance, errors = moments.covariances()
    corrected = compensate(weight, errors, covariance)
    shift = received.double() @ corrected.T + bias_correction(weight, corrected, moments) - exact
    assert shift.mean(dim=0).abs().max() < 1e-6
    ours = error(corrected)
    assert ours < 0.95 * error(weight)
    # Only the damping keeps it from the least of all errors, that of a regression.
    with_ones = torch.cat([received, torch.ones(400, 1)], dim=1).double()
    regression = torch.linalg.lstsq(with_ones, exact).solution[:-1].T
    assert error(regression) <= ours < 1.05 * error(regression)
    # Inputs that arrive unchanged leave the weights alone.
    covariance, errors = seen(inputs).covariances()
    assert torch.equal(compensate(weight, errors, covariance), weight)


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


@pytest.fixture
def network():
    torch.manual_seed(0)
    return tutorial_cnn().eval()


@pytest.fixture
def images():
    return torch.randn(40, 3, 32, 32, generator=torch.Generator().manual_seed(1))


def made(network, images, **options):
    ranges = calibrate(network, [images], observer_points(network, "relu"))
    count_magnitudes(network, [images], ranges)
    rounder = ByMoments([images]) if options.get("rounding") == "gptq" else NEAREST
    return quantize(network, Scheme.of(options), ranges, rounder)[0]


@torch.no_grad()
@pytest.mark.parametrize("weight_scales", ["tensor", "channel"])
@pytest.mark.parametrize("activation_bits", [None, 3])
def test_gptq_brings_the_outputs_of_few_bits_closer(
    network, images, weight_scales, activation_bits
):
    """Layers are rounded for what the layers before, quantized already, really pass on."""
    exact = network(images).double()

    def error(rounding):
        options = {"weight_bits": 3, "activation_bits": activation_bits, "rounding": rounding}
        if activation_bits:
            options |= {"unsigned": True, "logits": "float"}
        found = made(network, images, weight_scales=weight_scales, **options)
        return float((found(images) - exact).norm())

    assert error("gptq") < 0.7 * error("nearest")


@torch.no_grad()
def test_integers_alone_give_the_logits_of_the_simulation_bit_for_bit(network, images):
    for options in ({"weight_bits": 3}, {"weight_scales": "channel", "logits": "float"}):
        quantized = made(network, images, rounding="gptq", **options)
        found = exactness(quantized, images, quantized(images))
        assert found == {"logits": 400, "differing": 0}


def test_thresholds_of_the_least_output_error_err_less_than_others():
    moments, _ = seen(correlated(5)).covariances()
    weight, widest = weights_and_scales(5, 3, per_channel=True)
    chosen = least_output_error(moments, weight, widest, 3)

    def errors(scales):
        rounded = round_weights(moments, weight, scales, 3) / scales.unsqueeze(1)
        return output_errors(weight - rounded, moments)

    least = errors(chosen)
    assert least.sum() < 0.9 * errors(widest).sum()
    assert all((least <= errors(widest / share)).all() for share in (1, 0.8, 0.6))
