"""Layers rounded for what they receive in the quantized network."""

import pytest
import torch

from extras.bits.gptq import output_errors
from extras.bits.moments import ByMoments, round_layer
from scaling.config.scheme import Scheme
from scaling.models.tutorial_cnn import tutorial_cnn
from scaling.quantization.calibration import calibrate, layers, observer_points
from scaling.quantization.network import BitExactness, quantize


@pytest.fixture
def network():
    torch.manual_seed(0)
    return tutorial_cnn().eval()


@pytest.fixture
def images():
    return torch.randn(40, 3, 32, 32, generator=torch.Generator().manual_seed(1))


def made(network, images, **options):
    ranges = calibrate(network, [images], observer_points(network, "relu"))
    return quantize(network, Scheme.of(options), ranges, ByMoments([images]))[0]


@torch.no_grad()
@pytest.mark.parametrize("bits", [{"activation_bits": None}, {"activation_bits": 3}])
def test_gptq_and_a_corrected_bias_bring_the_outputs_of_few_bits_closer(network, images, bits):
    """Layers are rounded for what the layers before, quantized already, really pass on."""
    exact = network(images).double()

    def error(**options):
        if bits["activation_bits"]:
            options |= {"unsigned": True, "logits": "float"}
        found = made(network, images, **({"weight_bits": 3} | bits | options))
        return float((found(images) - exact).norm())

    plain, corrected = error(), error(bias_correction=True)
    assert error(bias_correction=True, rounding="gptq") < 0.8 * corrected < 0.8 * plain


@torch.no_grad()
@pytest.mark.parametrize(
    "options",
    [
        {"weight_bits": 3, "rounding": "gptq", "bias_correction": True},
        {"weight_scales": "channel", "logits": "float", "weight_range": "output"},
    ],
)
def test_integers_alone_give_the_logits_of_the_simulation_bit_for_bit(network, images, options):
    quantized, found = made(network, images, **options), BitExactness()
    found.compare(quantized, images, quantized(images))
    assert (found.logits, found.differing) == (400, 0)


@pytest.mark.parametrize("weight_scales", ["tensor", "channel"])
def test_a_range_by_the_output_error_gives_no_larger_one_than_other_ranges(network, weight_scales):
    fc3 = layers(network)["fc3"]
    inputs = ByMoments([torch.rand(300, 84, generator=torch.Generator().manual_seed(0))])
    moments = inputs.moments(fc3)

    def error(weight_range):
        options = {"weight_bits": 3, "weight_scales": weight_scales, "weight_range": weight_range}
        rounded = round_layer("fc3", fc3, Scheme.of(options), moments)
        difference = rounded.weight / rounded.scales.unsqueeze(1) - fc3.weight.detach()
        return float(output_errors(difference, moments.second(centred=False)[0]).sum())

    assert error("output") < error("max_abs")
    assert error("output") <= 1.02 * error("mse")  # Whose thresholds are other hundredths.
