"""ResNet-18 on integers: folding, the sum of two branches, and all stages as the rules run them."""

from pathlib import Path

import pandas as pd
import pytest
import torch
import yaml
from torch import nn

import tables_experiments
from examples import quantized_digits as examples
from examples.made_here import assert_made_here
from extras.bits.resnet import fold, residual
from scaling.config import config
from scaling.config.scheme import Scheme
from scaling.core.errors import UserError
from scaling.models.resnet import ResNet18
from scaling.models.tutorial_cnn import load_into
from scaling.quantization.network import calibrate, exactness, layers, quantize

ROOT = Path(__file__).parents[4]
MODEL = {"model": "resnet18-cifar", "model_width": 4}
TRAINING = {"epochs": 2, "batch_size": 20, "learning_rate": 0.05, "weight_decay": 5e-4}
TRAINING |= {"crop_padding": 0, "horizontal_flip": False}
TRAINING |= {"recipe": "plain", "engine": "eager", "recipe_options": {"loader_workers": 0}}


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


@pytest.fixture(scope="module")
def network(study):
    made = ResNet18(width=4)
    load_into(made, study / "weights.pt", "it", "quantize_train.py")
    return made.eval()


@pytest.fixture(scope="module")
def images():
    return torch.randn(16, 3, 32, 32, generator=torch.Generator().manual_seed(1))


@torch.no_grad()
def test_folding_leaves_the_function_and_no_batch_norm(network, images):
    folded = fold(network)
    assert not [each for each in folded.modules() if isinstance(each, nn.BatchNorm2d)]
    assert len(layers(folded)) == 1 + 8 * 2 + 3 + 1
    torch.testing.assert_close(folded(images), network(images), rtol=1e-4, atol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize(
    "options", [{}, {"bias": "float"}, {"weight_scales": "channel", "logits": "float"}], ids=str
)
def test_integers_give_the_logits_of_the_simulation_near_the_float_ones(network, images, options):
    folded = fold(network)
    made = quantize(folded, Scheme(**options), calibrate(folded, images.split(10)), residual)
    beyond_calibration = 1.5 * images
    found = exactness(made, [beyond_calibration], torch.device("cpu"))
    assert found == {"logits": 160, "differing": 0}
    assert made(beyond_calibration).unique().numel() > 50
    exact, logits = folded(images).double(), made(images)
    logits *= (exact * logits).sum() / logits.square().sum()  # Int8 ones have a scale.
    noise = (logits - exact).square().sum()
    assert 10 * torch.log10(exact.square().sum() / noise) > 30


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
    # A quarter but for biases and scales, which are many where channels are few.
    assert 3.4 < row["float32_bytes"] / row["packed_bytes"] < 4
    assert (row["logits"], row["differing_logits"]) == (1000, 0)
    assert row["accumulator_bound"] < 2**31


def test_what_trained_it_may_be_tuned_and_weights_of_another_width_are_refused(study):
    switches = dict.fromkeys(["channels_last", "compile", "cuda_graph", "fused_norms"], False)
    tuned = {"precision": "float32", **switches}
    train(study, "tuned.pt", recipe="tuned", engine="resident", recipe_options=tuned)
    first, last = examples.document(study, "tuned.pt")["epochs"]
    assert last["train_loss"] < 0.95 * first["train_loss"]
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
