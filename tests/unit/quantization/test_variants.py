"""Training of a network on digits, its variants, and invariants that reveal known mistakes."""

import json
import re

import pytest
import torch

from examples.quantized_digits import STAGES, assert_made_here, evaluate, train
from examples.quantized_digits import record as record_of
from scaling.config.scheme import MISTAKES, Scheme
from scaling.core.errors import UserError
from scaling.data.batches import read_images
from scaling.models.tutorial_cnn import load_weights, save_weights
from scaling.quantization.variant import measure

BOTH = "activation_scale+bias_unscaled"


@pytest.fixture(scope="module")
def records(quantized_digits):
    """Return the record of the correct variant (key "") and of each mistake."""
    paths = quantized_digits / "images.npz", quantized_digits / "manifest.json"
    training, test, _ = read_images(*paths, torch.device("cpu"))
    network, chosen = load_weights(quantized_digits / "weights.pt"), training.sample(len(test), 3)
    tried = {"": [], BOTH: BOTH.split("+")} | {name: [name] for name in MISTAKES}
    return {
        name: measure(network, Scheme(mistakes=made), chosen, test, 0)
        for name, made in tried.items()
    }


def test_stages_cost_at_most_a_point(quantized_digits):
    for name in STAGES:
        record = record_of(quantized_digits, name)
        assert_made_here(record["environment"])
        assert record["float32"]["accuracy_percent"] > 90 and record["test_images"] == 150
        assert abs(record["difference_points"]) <= 1.1 and record["agreement_percent"] >= 98
    assert record["float32_bytes"] == 4 * 62_006
    # A byte for each weight, four for each bias, each scale and the scale of the images.
    assert record["packed_bytes"] == 61_770 + 4 * 236 + 4 * 5 + 4


def test_histograms_count_all_values_of_all_layers(quantized_digits):
    entries = record_of(quantized_digits)["histograms"]
    assert len(entries) == 14
    # Of the weights, and of what a layer passes on for each of 150 images.
    sizes = {"conv1": (450, 6 * 28 * 28), "conv2": (2400, 16 * 10 * 10), "fc1": (48000, 120)}
    sizes |= {"fc2": (10080, 84), "fc3": (840, 10)}
    for entry in entries:
        quantity, (weights, values) = entry["quantity"], sizes[entry["layer"]]
        expected = weights if quantity == "weights" else 150 * values
        for of in ("float", "int8"):
            edges, counts = entry[of]["bin_edges"], entry[of]["counts"]
            assert sum(counts) == expected and len(edges) == len(counts) + 1
            lowest, highest = edges[0] * entry["scale"], edges[-1] * entry["scale"]
            assert quantity != "after_relu" or lowest == pytest.approx(-0.5)
        assert lowest > -128.6 and highest < 127.6


def test_invalid_evaluation_is_refused(quantized_digits):
    network, wild = load_weights(quantized_digits / "weights.pt"), quantized_digits / "wild.pt"
    network.fc3.bias.data[0] = 1e9
    save_weights(network, wild)
    for changes, complaint in (
        ({"weights": wild, "variants": {"plain": {}}}, "variant plain cannot be made: fc3 could a"),
        ({"variants": {"w4": {"weight_bit": 4}}}, "variant w4 has the unknown key weight_bit"),
        ({"calibration_images": 501}, "501 images cannot be drawn from 500"),
    ):
        with pytest.raises(UserError, match=complaint):
            evaluate(quantized_digits, "never", **changes)


def signs(mistaken, sound):
    """Return the invariants that `mistaken` breaks, and "accuracy" if it is significantly lower."""
    error = 2 * max(mistaken["standard_error_points"], sound["standard_error_points"])
    pairs = [*zip(mistaken["layers"], sound["layers"], strict=True)]
    steps = [(wrong["top_step"], right["top_step"]) for wrong, right in pairs if wrong["top_step"]]
    found = {
        "accuracy": mistaken["accuracy_percent"] < sound["accuracy_percent"] - error,
        "S·o·max": any(abs(wrong / right - 1) > 1e-5 for wrong, right in steps),
        "bias": any(wrong["bias_error_steps"] > 0.5 + 1e-6 for wrong, _ in pairs),
        "calibration": mistaken["calibration_checksum"] != mistaken["training_checksum"],
    }
    return {name for name, shown in found.items() if shown}


def test_correct_variant_keeps_every_invariant(records):
    sound = records[""]
    json.dumps(sound, allow_nan=False)
    for row in sound["layers"]:
        assert row["top_step"] == pytest.approx(127, rel=1e-6)
        assert row["bias_error_steps"] <= 0.5
        assert row["accumulator_bound"] < 2**31
    assert signs(sound, sound) == set()


@pytest.mark.parametrize(
    ("mistake", "expected"),
    [
        ("activation_scale", {"accuracy", "S·o·max"}),
        ("bias_scale", {"bias"}),
        ("255_for_127", {"S·o·max"}),
        ("bias_unscaled", {"bias"}),
        ("no_product", {"S·o·max", "bias"}),
        ("one_image", {"calibration"}),
        ("test_data", {"calibration"}),
        (BOTH, {"accuracy", "S·o·max", "bias"}),
    ],
)
def test_mistake_is_revealed_by_its_invariants(records, mistake, expected):
    wrong, sound = records[mistake], records[""]
    assert wrong["training_checksum"] == sound["calibration_checksum"]
    found = signs(wrong, sound)
    assert expected <= found
    assert mistake != "255_for_127" or "accuracy" not in found


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
    float32 = record_of(quantized_digits, "own")["float32"]["accuracy_percent"]
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
