"""The training of the network that is quantized, as the rule runs it; on a GPU of its own."""

import os
import uuid

import pytest
import torch

from examples.quantized_digits import assert_made_here, document, evaluate, record, train
from scaling.core import environment
from scaling.core.errors import UserError
from scaling.launch import lease
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


def test_training_summary_and_sentence_of_divergence(quantized_digits):
    train(quantized_digits, "own.pt", epochs=6)
    own = {"weights": quantized_digits / "own.pt", "variants": {"own": {"activation_bits": None}}}
    evaluate(quantized_digits, "", **own)
    summary = document(quantized_digits, "own.pt")
    assert summary["parameters"] == 62_006 and summary["device"] == "cpu"
    assert_made_here(summary["environment"])
    losses = [row["train_loss"] for row in summary["epochs"]]
    assert len(losses) == 6 and losses[-1] < losses[0]
    float32 = record(quantized_digits, "own")["float32"]["accuracy_percent"]
    assert summary["test_accuracy"] == pytest.approx(float32 / 100)
    complaint = r"diverged in epoch 1; lower --learning-rate, now 1000000\.0"
    with pytest.raises(UserError, match=complaint):
        train(quantized_digits, "never.pt", learning_rate=1e6)
    assert not (quantized_digits / "never.pt").exists()


@pytest.mark.parametrize(("biases", "held", "layers"), [("last", 226, 4), ("none", 236, 5)])
def test_layers_without_a_bias_hold_zeros_for_it(quantized_digits, biases, held, layers):
    train(quantized_digits, "few.pt", biases=biases)
    assert document(quantized_digits, "few.pt")["parameters"] == 62_006 - held
    found = load_weights(quantized_digits / "few.pt").state_dict()
    zeros = [name for name, value in found.items() if not value.any()]
    assert zeros == [name for name in found if "bias" in name][:layers]


def test_two_jobs_of_part_b_never_share_a_gpu(monkeypatch):
    gpus = [f"GPU-{uuid.uuid4()}" for _ in range(2)]
    monkeypatch.setattr(environment, "visible_gpus", lambda: gpus)
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.setenv(name, "")
    with lease.device("cuda") as first:
        own = os.environ["CUDA_VISIBLE_DEVICES"]
        with lease.device("cuda") as second:
            assert [own, os.environ["CUDA_VISIBLE_DEVICES"]] == gpus
    assert first.type == second.type == "cuda"
    with lease.device("auto"):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == gpus[0]
    with lease.device("cpu") as device:
        assert device.type == "cpu"
