"""The training of the network that is quantized, as the rule runs it."""

from pathlib import Path

import pytest
import torch

from examples.made_here import assert_made_here
from examples.quantized_digits import document, record, train
from scaling.core.errors import UserError
from scaling.models.tutorial_cnn import load_weights

ROOT = Path(__file__).parents[3]


def test_a_seed_gives_the_same_weights_bit_for_bit_and_another_seed_others(quantized_digits):
    weights = []
    for name, seed in (("one.pt", 3), ("again.pt", 3), ("other.pt", 4)):
        train(quantized_digits, name, seed=seed)
        weights.append((quantized_digits / name).read_bytes())
    assert weights[0] == weights[1] != weights[2]
    summary = document(quantized_digits, "weights.pt")
    assert summary["parameters"] == 62_006 and summary["device"] == "cpu"
    assert_made_here(summary["environment"])
    losses = [row["train_loss"] for row in summary["epochs"]]
    assert len(losses) == 6 and losses[-1] < losses[0]
    float32 = record(quantized_digits)["float32"]["accuracy_percent"]
    assert summary["test_accuracy"] == pytest.approx(float32 / 100)


def test_a_seed_draws_the_order_of_the_images_too(quantized_digits, monkeypatch):
    seed_weights, losses = torch.manual_seed, []
    monkeypatch.setattr(torch, "manual_seed", lambda seed: seed_weights(0))
    for seed in (3, 4):
        train(quantized_digits, "one.pt", seed=seed, epochs=1)
        losses.append(document(quantized_digits, "one.pt")["epochs"][0]["train_loss"])
    assert losses[0] != losses[1]


@pytest.mark.parametrize(("biases", "held"), [("last", 226), ("none", 236)])
def test_layers_without_a_bias_hold_zeros_for_it(quantized_digits, biases, held):
    train(quantized_digits, f"{biases}.pt", biases=biases)
    summary = document(quantized_digits, f"{biases}.pt")
    assert summary["parameters"] == 62_006 - held and summary["training"]["biases"] == biases
    found = load_weights(quantized_digits / f"{biases}.pt").state_dict()
    zeros = [name for name, value in found.items() if not value.any()]
    assert zeros == [name for name in found if "bias" in name][: 4 if biases == "last" else 5]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"learning_rate": 1e6}, r"diverged in epoch 1; lower --learning-rate, now 1000000\.0"),
        ({"model": "vgg"}, "'vgg' is no quantized model; choose one of resnet18-cifar, tutorial"),
    ],
)
def test_training_that_cannot_work_says_why(quantized_digits, changes, complaint):
    with pytest.raises(UserError, match=complaint):
        train(quantized_digits, "never.pt", **changes)
    assert not (quantized_digits / "never.pt").exists()
