"""ResNet-18 on integers: folding, two branches at one scale, and integers against floats."""

import pytest
import torch
from torch import nn

from extras.bits.resnet import (
    BRANCH,
    fold,
    observer_points,
    quantize,
)
from scaling.config.scheme import Scheme
from scaling.models.resnet import ResNet18
from scaling.quantization.calibration import calibrate, layers
from scaling.quantization.integers import INT8
from scaling.quantization.network import QuantizedLayer, in_integers


@pytest.fixture(scope="module")
def images():
    return torch.randn(16, 3, 32, 32, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def network(images):
    """A narrow ResNet-18 whose batch norms have seen images and have learned factors and shifts."""
    torch.manual_seed(0)
    made = ResNet18(width=4)
    for module in made.modules():
        if isinstance(module, nn.BatchNorm2d):
            torch.nn.init.uniform_(module.weight, 0.5, 2)
            torch.nn.init.normal_(module.bias)
            module.momentum = 1.0
    with torch.no_grad():
        made(images)
    return made.eval()


@pytest.fixture(scope="module")
def folded(network):
    return fold(network)


def quantized(folded, images, branch=BRANCH, **options):
    calibration = calibrate(folded, images.split(10), observer_points(folded))
    return quantize(folded, Scheme(**options), calibration, branch)


@torch.no_grad()
def test_folding_leaves_the_function_and_no_batch_norm(network, folded, images):
    assert not [each for each in folded.modules() if isinstance(each, nn.BatchNorm2d)]
    assert len(layers(folded)) == 1 + 8 * 2 + 3 + 1
    torch.testing.assert_close(folded(images), network(images), rtol=1e-4, atol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weight_scales": "channel", "logits": "float"},
        {"bias": "float"},
        # As they are exported: sums of int8 branches do not wrap.
        {"branch": INT8},
        {"branch": INT8, "unsigned": True},
    ],
)
def test_integers_alone_give_the_logits_of_the_simulation(folded, images, options):
    made, beyond_calibration = quantized(folded, images, **options), 1.5 * images
    simulated = made(beyond_calibration)
    assert torch.equal(simulated, in_integers(made, beyond_calibration).double())
    assert simulated.unique().numel() > (20 if "branch" in options else 50)


@torch.no_grad()
def test_quantized_logits_are_near_the_float_ones(folded, images):
    exact = folded(images).double()
    found = []
    for bits in (8, 4):
        made = quantized(folded, images, logits="float", weight_scales="channel", weight_bits=bits)
        noise = (made(images) - exact).square().sum()
        found.append(10 * torch.log10(exact.square().sum() / noise).item())
    assert found[0] > 25 and found[0] > found[1] + 10


@torch.no_grad()
def test_both_branches_meet_at_one_scale_and_its_sum_fills_int8(folded, images):
    ranges = calibrate(folded, [images], observer_points(folded))
    made = quantized(folded, images, weight_scales="channel")
    values, before = made.relu(made.stem(made.quantize(images))), "stem"
    for index, module in enumerate(made.blocks):
        name = f"blocks.{index}"
        amax = max(ranges[f"{name}.{each}"].max_abs for each in ("conv2", "shortcut"))
        common = pytest.approx(BRANCH.high / amax, rel=1e-6)
        assert module.conv2.passed_scale == common
        # Where the block's input is the shortcut, its scale times the factor is the common one.
        if isinstance(module.shortcut, QuantizedLayer):
            assert module.shortcut.passed_scale == common
        else:
            assert module.shortcut.factor.item() * 127 / ranges[before].max_abs == common
        passed = module.total.factor.item() * BRANCH.high / amax * ranges[name].max_abs
        assert passed == pytest.approx(127, rel=1e-6)
        values, before = module(values), name
        assert torch.equal(values, values.round())
        assert values.min() >= 0 and 120 <= values.max() <= 127
    assert index == 7
