"""ResNet-18 on integers: folding, two branches at one scale, and integers against floats."""

from typing import Any

import pytest
import torch
from torch import Tensor

from scaling.config.scheme import Scheme
from scaling.core.errors import UserError
from scaling.models.resnet import ResNet18
from scaling.quantization.network import QuantizedLayer
from scaling.quantization.resnet import (
    BRANCH,
    QuantizedBlock,
    QuantizedResNet,
    Simulation,
    activation_ranges,
    fold,
    folded_layers,
    with_integers,
)


@pytest.fixture(scope="module")
def images() -> Tensor:
    return torch.randn(24, 3, 32, 32, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def network(images: Tensor) -> ResNet18:
    """A narrow ResNet-18 whose batch norms have seen images and have learned factors and shifts."""
    torch.manual_seed(0)
    made = ResNet18(width=4)
    for module in made.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.weight, 0.5, 2)
            torch.nn.init.normal_(module.bias)
    with torch.no_grad():
        for _ in range(20):
            made(images)
    return made.eval()


@pytest.fixture(scope="module")
def folded(network: ResNet18) -> ResNet18:
    return fold(network)


def quantized(folded: ResNet18, images: Tensor, **options: Any) -> QuantizedResNet:
    return with_integers(folded, activation_ranges(folded, images.split(10)), Scheme(**options))


@torch.no_grad()
def test_folding_leaves_the_function_and_no_batch_norm(
    network: ResNet18, folded: ResNet18, images: Tensor
) -> None:
    assert not [each for each in folded.modules() if isinstance(each, torch.nn.BatchNorm2d)]
    assert len(folded_layers(folded)) == 1 + 8 * 2 + 3 + 1
    torch.testing.assert_close(folded(images), network(images), rtol=1e-4, atol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("weight_scales", ["tensor", "channel"])
def test_the_integer_pipeline_gives_the_logits_of_the_simulation(
    folded: ResNet18, images: Tensor, weight_scales: str
) -> None:
    made = quantized(folded, images, weight_scales=weight_scales)
    beyond_calibration = 1.5 * images
    simulated, integers = made(beyond_calibration), made.in_integers(beyond_calibration)
    assert integers.dtype == torch.int8
    assert torch.equal(simulated.long(), integers.long())
    assert simulated.unique().numel() > 50


@torch.no_grad()
@pytest.mark.parametrize("bias", ["int32", "float"])
def test_float_logits_are_the_same_from_integers(
    folded: ResNet18, images: Tensor, bias: str
) -> None:
    made = quantized(folded, images, logits="float", bias=bias)
    assert torch.equal(made(images), made.in_integers(images))


@torch.no_grad()
def test_quantized_logits_are_near_the_float_ones(folded: ResNet18, images: Tensor) -> None:
    exact = folded(images).double()
    found = []
    for bits in (8, 4):
        made = quantized(folded, images, logits="float", weight_scales="channel", weight_bits=bits)
        noise = (made(images) - exact).square().sum()
        found.append(10 * torch.log10(exact.square().sum() / noise).item())
    assert found[0] > 25 and found[0] > found[1] + 10


@torch.no_grad()
def test_both_branches_meet_at_one_scale_and_its_sum_fills_int8(
    folded: ResNet18, images: Tensor
) -> None:
    found = activation_ranges(folded, [images])
    made = with_integers(folded, found, Scheme(weight_scales="channel"))
    values = made.stem(made.entrance(images)).clamp(min=0)
    for index, block in enumerate(made.blocks):
        assert isinstance(block, QuantizedBlock)
        reach = max(found[f"blocks.{index}.{name}"].max_abs for name in ("conv2", "shortcut"))
        common = BRANCH.high / reach
        assert block.conv2.passed_scale == pytest.approx(common, rel=1e-6)
        # Where the block's input is the shortcut, its scale times the factor is the common one.
        before = f"blocks.{index - 1}" if index else "stem"
        input_scale = 127 / found[before].max_abs
        if isinstance(block.shortcut, QuantizedLayer):
            assert block.shortcut.passed_scale == pytest.approx(common, rel=1e-6)
        else:
            factor = block.shortcut.factor.item()
            assert factor * input_scale == pytest.approx(common, rel=1e-6)
        passed = block.total.factor.item() * common * found[f"blocks.{index}"].max_abs
        assert passed == pytest.approx(127, rel=1e-6)
        values = block.compute(values, Simulation())
        assert torch.equal(values, values.round())
        assert values.min() >= 0 and 120 <= values.max() <= 127


def test_options_that_it_does_not_have_are_refused_by_name(
    folded: ResNet18, images: Tensor
) -> None:
    with pytest.raises(UserError, match="ResNet-18 is not quantized with rounding gptq"):
        quantized(folded, images, rounding="gptq")
