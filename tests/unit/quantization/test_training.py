"""Training of the network that is quantized, called as by its rule."""

import re

import pytest
import torch

from examples.quantized_digits import evaluate, record, train
from scaling.core.errors import UserError
from scaling.models.tutorial_cnn import load_weights


def test_seed_draws_initial_weights_and_order(quantized_digits, monkeypatch):
    def weights(name, seed):
        train(quantized_digits, name, seed=seed)
        return (quantized_digits / name).read_bytes()

    one, other = weights("one.pt", 3), weights("other.pt", 4)
    assert weights("again.pt", 3) == one != other
    seed_weights = torch.manual_seed
    monkeypatch.setattr(torch, "manual_seed", lambda seed: seed_weights(3))
    assert weights("mixed.pt", 4) not in (one, other)


def test_training_prints_its_loss_and_accuracy(quantized_digits, capsys):
    train(quantized_digits, "own.pt", epochs=6)
    losses = re.findall(r"epoch \d: training loss (.+)", printed := capsys.readouterr().out)
    assert len(losses) == 6 and float(losses[-1]) < float(losses[0])
    own = {"weights": quantized_digits / "own.pt", "variants": {"own": {"activation_bits": None}}}
    evaluate(quantized_digits, "", **own)
    float32 = record(quantized_digits, "own")["float32"]["accuracy_percent"]
    assert f"test accuracy {float32 / 100:.4f}" in printed


def test_diverging_training_is_a_sentence(quantized_digits):
    complaint = r"diverged in epoch 1; lower --learning-rate, now 1000000\.0"
    with pytest.raises(UserError, match=complaint):
        train(quantized_digits, "never.pt", learning_rate=1e6)
    assert not (quantized_digits / "never.pt").exists()


@pytest.mark.parametrize(("biases", "layers"), [("last", 4), ("none", 5)])
def test_layers_without_a_bias_hold_zeros_for_it(quantized_digits, biases, layers):
    train(quantized_digits, "few.pt", biases=biases)
    found = load_weights(quantized_digits / "few.pt").state_dict()
    zeros = [name for name, value in found.items() if not value.any()]
    assert zeros == [name for name in found if "bias" in name][:layers]
