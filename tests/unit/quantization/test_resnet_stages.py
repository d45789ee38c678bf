"""ResNet-18 from its training to the table of stages, as the rules run them, at a small width."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

import tables_quantization
from examples import quantized_digits as examples
from examples.made_here import assert_made_here
from scaling.core import files
from scaling.core.errors import UserError
from scaling.data import digits
from scaling.data.dataset import ImageDataset
from scaling.quantization.integer_inference import BitExactness

MODEL = {"model": "resnet18-cifar", "model_width": 4}


def train(folder: Path, name: str, **changes: Any) -> None:
    options = {"epochs": 3, "batch_size": 20, "learning_rate": 0.05, "weight_decay": 5e-4}
    options |= {"crop_padding": 0, "horizontal_flip": False}
    options["recipe_options"] = {"loader_workers": 0}
    examples.train(folder, name, **MODEL, **(options | changes))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with some digits, a narrow ResNet-18 trained on them, its stages and their table."""
    folder = tmp_path_factory.mktemp("study")
    torch.set_num_threads(1)
    images = digits.read()[0]
    parts = [images.train_images[:600], images.train_labels[:600]]
    parts += [images.test_images[:200], images.test_labels[:200]]
    examples.write_images(folder, ImageDataset(*parts, images.classes))
    train(folder, "weights.pt")
    examples.evaluate(folder, "resnet.json", **MODEL, calibration_images=200)
    tables_quantization.main(["--stages", str(folder / "resnet.json"), "--output", str(folder)])
    return folder


def test_a_logit_that_differs_is_counted_and_the_pipeline_has_none(study: Path) -> None:
    stages = examples.document(study, "resnet")["stages"]
    assert [row["exactness"] for row in stages if "exactness" in row] == [
        {"logits": 2000, "differing": 0}
    ] * 2
    found = BitExactness()
    found.count(torch.tensor([[1, 2], [3, 4]], dtype=torch.int8), torch.tensor([[1.0, 2], [3, 5]]))
    assert (found.logits, found.differing) == (4, 1)


def test_both_records_name_commit_versions_and_times(study: Path) -> None:
    for name in ("weights.pt", "resnet"):
        assert_made_here(examples.document(study, name)["environment"])


def test_the_trained_network_has_learned_and_keeps_it_through_the_stages(study: Path) -> None:
    table = pd.read_csv(study / "quantization_resnet.csv")
    summary = examples.document(study, "weights.pt")
    stages = ["weights", "weights+activations", "weights+activations+bias"]
    assert list(table["stage"]) == ["float32", *stages, *stages]
    assert list(table["weight_scales"][1:]) == ["tensor"] * 3 + ["channel"] * 3
    float32 = table["accuracy_percent"][0]
    assert float32 == pytest.approx(100 * summary["evaluation"]["test_accuracy"]) and float32 > 70
    assert table["difference_points"][0] == 0
    assert (table["agreement_percent"][4:] >= 95).all()
    assert (table["standard_error_points"] >= 0).all()


def test_packed_it_is_about_a_quarter_and_no_accumulator_leaves_int32(study: Path) -> None:
    table = pd.read_csv(study / "quantization_resnet.csv").set_index(["stage", "weight_scales"])
    assert ",2000,0," in (study / "quantization_resnet.csv").read_text()
    row = table.loc[("weights+activations+bias", "tensor")]
    assert 3.7 < row["float32_bytes"] / row["packed_bytes"] < 4
    assert (row["logits"], row["differing_logits"]) == (2000, 0)
    layers = examples.document(study, "resnet")["layers"]
    assert len(layers) == 2 * 21
    bounds = [each["accumulator_bound"] for each in layers if each["weight_scales"] == "tensor"]
    assert row["accumulator_bound"] == max(bounds) < 2**31
    assert all(each["float32_exact"] == (each["accumulator_bound"] <= 2**24) for each in layers)


def test_the_same_seed_gives_the_same_weights(study: Path) -> None:
    for name in ("one.pt", "again.pt"):
        train(study, name, epochs=1)
    assert (study / "again.pt").read_bytes() == (study / "one.pt").read_bytes()


def test_a_training_that_diverges_says_what_to_do(study: Path) -> None:
    with pytest.raises(UserError, match=r"diverged in epoch \d; lower --learning-rate, now 1e\+20"):
        train(study, "diverged.pt", learning_rate=1e20)


def test_weights_of_another_width_and_other_records_are_refused(
    study: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="of another network than a ResNet-18 of width 8"):
        examples.evaluate(
            study, "never.json", **(MODEL | {"model_width": 8}), calibration_images=200
        )
    files.write_json(tmp_path / "other.json", {"seed": 0, "stages": []})
    with pytest.raises(UserError, match=r"not written by quantize_evaluate\.py --model resnet18"):
        tables_quantization.main(
            ["--stages", str(tmp_path / "other.json"), "--output", str(tmp_path)]
        )
