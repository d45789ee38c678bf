"""ResNet-18 from its training to the table of stages, as the rules run them, at a small width."""

import pandas as pd
import pytest
import torch

import tables_experiments
from examples import quantized_digits as examples
from examples.made_here import assert_made_here
from scaling.core.errors import UserError

MODEL = {"model": "resnet18-cifar", "model_width": 2}


def train(folder, name, **changes):
    options = {"epochs": 2, "batch_size": 20, "learning_rate": 0.05, "weight_decay": 5e-4}
    options |= {"crop_padding": 0, "horizontal_flip": False}
    options |= {"recipe": "plain", "engine": "eager", "recipe_options": {"loader_workers": 0}}
    examples.train(folder, name, **MODEL, **(options | changes))


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A folder with some digits, a narrow ResNet-18 trained on them, its stages and their table."""
    folder = tmp_path_factory.mktemp("study")
    examples.write_images(folder, examples.some_digits(300, 100))
    train(folder, "weights.pt")
    examples.evaluate(folder, "resnet.json", **MODEL, calibration_images=50)
    tables_experiments.main(["--stages", str(folder / "resnet.json"), "--tables", str(folder)])
    return folder


def test_the_trained_network_keeps_what_it_learned_through_the_stages(study):
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


def test_what_trained_it_may_be_tuned_as_well(study):
    switches = dict.fromkeys(["channels_last", "compile", "cuda_graph", "fused_norms"], False)
    own = {"recipe": "tuned", "engine": "resident"}
    own |= {"recipe_options": {"precision": "float32", **switches}}
    train(study, "tuned.pt", **own)
    examples.evaluate(
        study, "tuned.json", **MODEL, weights=study / "tuned.pt", calibration_images=50
    )
    summary, record = (examples.document(study, name) for name in ("tuned.pt", "tuned"))
    accuracy = summary["evaluation"]["test_accuracy"]
    assert record["stages"][0]["accuracy_percent"] == pytest.approx(100 * accuracy)
    first, last = (epoch["train_loss"] for epoch in summary["epochs"])
    assert last < 0.95 * first
    with pytest.raises(UserError, match=r"cuda_graph .* needs a GPU: this is a CPU"):
        own["recipe_options"] |= {"cuda_graph": True}
        train(study, "captured.pt", **own)


def test_the_same_seed_gives_the_same_weights_and_one_that_diverges_says_what_to_do(
    study,
):
    train(study, "again.pt")
    assert (study / "again.pt").read_bytes() == (study / "weights.pt").read_bytes()
    with pytest.raises(UserError, match=r"epoch \d; lower --learning-rate, now 1000000000"):
        train(study, "diverged.pt", learning_rate=1e9)
    wider = MODEL | {"model_width": 8}
    with pytest.raises(UserError, match="of another network than a ResNet-18 of width 8"):
        examples.evaluate(study, "never.json", **wider, calibration_images=50)


def test_stages_that_cannot_be_made_are_left_out_and_say_why(study):
    weights = torch.load(study / "weights.pt", weights_only=True)
    weights["head.2.weight"].zero_()
    torch.save(weights, study / "zero.pt")
    examples.evaluate(study, "zero.json", **MODEL, weights=study / "zero.pt", calibration_images=50)
    record = examples.document(study, "zero")
    assert [row["stage"] for row in record["stages"]] == ["float32"]
    reasons = [one["reason"] for one in record["left_out"]]
    assert len(reasons) == 6 and all("weights of fc have no int8 scale" in one for one in reasons)
