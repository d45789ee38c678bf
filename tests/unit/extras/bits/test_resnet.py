"""ResNet-18 on integers: folding, branches at one scale, and all stages as the rules run them."""

from pathlib import Path

import pandas as pd
import pytest
import torch
import yaml
from torch import nn

import tables_experiments
from examples import quantized_digits as examples
from examples.made_here import assert_made_here
from extras.bits.resnet import blocks, fold, observer_points, residual
from scaling.config import config
from scaling.config.scheme import Scheme
from scaling.core.errors import UserError
from scaling.models.resnet import ResNet18
from scaling.quantization.calibration import calibrate, layers
from scaling.quantization.network import exactness, quantize

ROOT = Path(__file__).parents[4]
MODEL = {"model": "resnet18-cifar", "model_width": 2}
TRAINING = {"epochs": 2, "batch_size": 20, "learning_rate": 0.05, "weight_decay": 5e-4}
TRAINING |= {"crop_padding": 0, "horizontal_flip": False}
TRAINING |= {"recipe": "plain", "engine": "eager", "recipe_options": {"loader_workers": 0}}


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


def quantized(folded, images, **options):
    calibration = calibrate(folded, images.split(10), observer_points(folded))
    return quantize(folded, Scheme(**options), calibration, residual)


@torch.no_grad()
def test_folding_leaves_the_function_and_no_batch_norm(network, folded, images):
    assert not [each for each in folded.modules() if isinstance(each, nn.BatchNorm2d)]
    assert len(layers(folded)) == 1 + 8 * 2 + 3 + 1
    torch.testing.assert_close(folded(images), network(images), rtol=1e-4, atol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize(
    ("options", "least_db"),
    [
        ({}, 25),
        ({"bias": "float"}, 25),
        ({"weight_scales": "channel", "logits": "float"}, 30),
    ],
)
def test_integers_give_the_logits_of_the_simulation_near_the_float_ones(
    folded, images, options, least_db
):
    made, beyond_calibration = quantized(folded, images, **options), 1.5 * images
    found = exactness(made, [beyond_calibration], torch.device("cpu"))
    assert found == {"logits": 160, "differing": 0}
    assert made(beyond_calibration).unique().numel() > 50
    exact, logits = folded(images).double(), made(images)
    logits *= (exact * logits).sum() / logits.square().sum()  # Int8 ones have a scale.
    noise = (logits - exact).square().sum()
    assert 10 * torch.log10(exact.square().sum() / noise) > least_db


def test_both_branches_meet_at_one_scale_and_its_sum_fills_int8(folded, images):
    ranges = calibrate(folded, [images], observer_points(folded))
    made, before = quantized(folded, images, weight_scales="channel").network, "stem"
    for name in blocks(folded):
        block, total = made.get_submodule(name)
        amax = max(ranges[f"{name}.{each}"].max_abs for each in ("conv2", "shortcut"))
        common = pytest.approx(32767 / amax, rel=1e-6)
        assert block.conv2.passed_scale == common
        # Where the block's input is the shortcut, its scale times the factor is the common one.
        if isinstance(block.shortcut, nn.Sequential):
            assert block.shortcut[0].passed_scale == common
        else:
            assert block.shortcut.factor.item() * 127 / ranges[before].max_abs == common
        inner = block.conv1.passed_scale * ranges[f"{name}.conv1"].maximum
        passed = total.factor.item() * 32767 / amax * ranges[name].max_abs
        assert [inner, passed] == pytest.approx([127, 127], rel=1e-6)
        before = name


def train(folder, name, **changes):
    examples.train(folder, name, **MODEL, **(TRAINING | changes))


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A folder with some digits, a narrow ResNet-18 trained on them, its stages and their table."""
    folder = tmp_path_factory.mktemp("study")
    examples.write_images(folder, 300, 100)
    train(folder, "weights.pt")
    examples.evaluate(folder, "resnet.json", **MODEL, calibration_images=50)
    tables_experiments.main(["--stages", str(folder / "resnet.json"), "--tables", str(folder)])
    return folder


def test_the_trained_network_keeps_what_it_learned_through_the_stages(study):
    train(study, "again.pt")
    assert (study / "again.pt").read_bytes() == (study / "weights.pt").read_bytes()
    table = pd.read_csv(study / "quantization_resnet.csv")
    summary, record = (examples.document(study, name) for name in ("weights.pt", "resnet"))
    for each in (summary, record):
        assert_made_here(each["environment"])
    stages = ["weights", "weights+activations", "weights+activations+bias"]
    assert list(table["stage"]) == ["float32", *stages, *stages]
    assert list(table["weight_scales"][1:]) == ["tensor"] * 3 + ["channel"] * 3
    float32 = table["accuracy_percent"][0]
    assert float32 == pytest.approx(100 * summary["evaluation"]["test_accuracy"])
    assert (table["agreement_percent"][4:] >= 90).all()

    row = table.set_index(["stage", "weight_scales"]).loc[("weights+activations+bias", "tensor")]
    # The packed bytes of 45,274 parameters, a quarter but for biases and scales.
    assert 3.4 < row["float32_bytes"] / row["packed_bytes"] < 4
    assert (row["logits"], row["differing_logits"]) == (1000, 0)
    assert row["accumulator_bound"] < 2**31


def test_what_trained_it_may_be_tuned_and_what_cannot_work_says_why(study):
    switches = dict.fromkeys(["channels_last", "compile", "cuda_graph", "fused_norms"], False)
    tuned = {"precision": "float32", **switches}
    own = {"recipe": "tuned", "engine": "resident"}
    train(study, "tuned.pt", **own, recipe_options=tuned)
    first, last = examples.document(study, "tuned.pt")["epochs"]
    assert last["train_loss"] < 0.95 * first["train_loss"]
    with pytest.raises(UserError, match=r"cuda_graph .* needs a GPU: this is a CPU"):
        train(study, "captured.pt", **own, recipe_options=tuned | {"cuda_graph": True})
    with pytest.raises(UserError, match=r"epoch \d; lower --learning-rate, now 1000000000"):
        train(study, "diverged.pt", learning_rate=1e9)
    wider = MODEL | {"model_width": 8}
    with pytest.raises(UserError, match="of another network than a ResNet-18 of width 8"):
        examples.evaluate(study, "never.json", **wider, calibration_images=50)


def test_the_configuration_that_asks_for_fewer_bits_is_right():
    asked, bits = (
        yaml.safe_load((ROOT / path).read_text())
        for path in ("config/config.yaml", "workflow/scripts/extras/bits/config.yaml")
    )
    asked["quantization"] |= bits["quantization"]
    found = config.asked(asked)["quantization"]["variants"]
    assert len(found) == 5 + 6 + 6 + 4 and found[-1]["name"] == "w2a2-max_abs"
