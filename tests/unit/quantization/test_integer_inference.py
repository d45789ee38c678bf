"""The simulation in floats and the pipeline in integer dtypes give the same logits, bit for bit."""

import pytest
import torch
from torch import Tensor, nn

from scaling.config.scheme import Scheme
from scaling.quantization.calibration import calibrate, count_magnitudes
from scaling.quantization.integer_inference import BitExactness, accumulate, integer_logits
from scaling.quantization.network import QuantizedLayer, with_integers
from scaling.quantization.rounding import LayerInputs

SCHEMES = [
    Scheme(),
    Scheme(bias="float"),
    Scheme(logits="float"),
    Scheme(weight_scales="channel", weight_range="mse", activation_range="mse"),
    Scheme(weight_scales="channel", logits="float"),
    Scheme(weight_bits=4, activation_bits=4, unsigned=True, activation_range="percentile"),
    Scheme(weight_bits=3, rounding="gptq", bias_correction=True),
    Scheme(weight_bits=4, weight_scales="channel", weight_range="output", rounding="gptq"),
    Scheme(mistake="activation_scale"),
    Scheme(mistake="no_product"),
    Scheme(mistake="bias_scale"),
]


def quantize(network: nn.Sequential, images: Tensor, scheme: Scheme) -> nn.Sequential:
    calibration = calibrate(network, [images])
    count_magnitudes(network, [images], calibration)
    return with_integers(network, calibration, scheme, LayerInputs([images]))


@torch.no_grad()
@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_both_give_the_same_logits_bit_for_bit(
    network: nn.Sequential, images: Tensor, scheme: Scheme
) -> None:
    quantized = quantize(network, images, scheme)
    beyond_calibration = 1.5 * images
    found = BitExactness()
    found.compare(quantized, quantized.quantize(beyond_calibration), quantized(beyond_calibration))
    assert (found.logits, found.differing) == (400, 0)


def test_values_are_int8_between_the_layers_and_sums_are_int32(
    network: nn.Sequential, images: Tensor
) -> None:
    quantized = quantize(network, images, Scheme())
    entered = quantized.quantize(images).to(torch.int8)
    sums = accumulate(quantized.conv1, entered)
    assert sums.dtype == torch.int32 and sums.abs().max() > 127
    logits = integer_logits(quantized, entered)
    assert logits.dtype == torch.int8 and logits.unique().numel() > 20
    floats = quantize(network, images, Scheme(logits="float"))
    assert integer_logits(floats, entered).dtype == torch.int32


def test_the_sums_are_those_of_int64_arithmetic(network: nn.Sequential, images: Tensor) -> None:
    quantized = quantize(network, images, Scheme())
    conv1, fc1 = quantized.conv1, quantized.fc1
    entered = quantized.quantize(images[:2]).to(torch.int8)
    patch = entered[1, :, 3:8, 7:12].long()
    expected = (patch * conv1.weight.long()).sum(dim=(1, 2, 3)) + conv1.bias.long()
    assert accumulate(conv1, entered)[1, :, 3, 7].tolist() == expected.tolist()
    values = torch.randint(-128, 128, (3, 400), dtype=torch.int8)
    expected = (values[2].long() * fc1.weight.long()).sum(dim=1) + fc1.bias.long()
    assert accumulate(fc1, values)[2].tolist() == expected.tolist()


def test_a_single_wrong_step_is_seen(network: nn.Sequential, images: Tensor) -> None:
    quantized = quantize(network, images, Scheme(logits="float"))
    entered = quantized.quantize(images)
    simulated = quantized(images)
    last = [module for module in quantized if isinstance(module, QuantizedLayer)][-1]
    step = 1 / last.accumulator_scale[0].item()
    simulated[7, 3] += step
    found = BitExactness()
    found.compare(quantized, entered, simulated)
    assert (found.logits, found.differing) == (400, 1)
