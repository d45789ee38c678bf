"""The quantization stages from the images to the table, as the rules run them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import plot_quantization_histograms
import quantize_evaluate
import quantize_train
import tables_quantization
from scaling import dataset, files
from scaling.errors import UserError
from scaling.quantization_stages import compare
from scaling.sources import digits
from scaling.tutorial_images import Images

STAGES = ["float32", "weights", "weights+activations", "weights+activations+bias"]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the digits, a network trained on them for a few seconds, and its stages."""
    folder = tmp_path_factory.mktemp("study")
    images = digits.read()
    dataset.save(images, folder / "images.npz")
    files.write_json(folder / "manifest.json", dataset.manifest(images, "digits", "scikit-learn"))
    train(folder, "weights.pt", epochs=5)
    evaluate(folder, "stages.json")
    return folder


def train(folder: Path, name: str, **changes: Any) -> None:
    options = {"seed": 0, "epochs": 1, "batch-size": 32, "learning-rate": 0.02, "momentum": 0.9}
    options |= {key.replace("_", "-"): value for key, value in changes.items()}
    named = [text for key, value in options.items() for text in (f"--{key}", str(value))]
    output = ["--output", str(folder / name), "--summary", str(folder / f"{name}.json")]
    quantize_train.main([*images_of(folder), *named, *output])


def evaluate(folder: Path, name: str, calibration_images: int = 0, seed: int = 0) -> None:
    quantize_evaluate.main(
        [
            *images_of(folder),
            *("--weights", str(folder / "weights.pt"), "--seed", str(seed)),
            *("--calibration-images", str(calibration_images), "--output", str(folder / name)),
        ]
    )


def images_of(folder: Path) -> list[str]:
    paths = "--dataset", str(folder / "images.npz"), "--manifest", str(folder / "manifest.json")
    return [*paths, "--device", "cpu"]


def document(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "stages.json").read_text())
    return found


class Picks(nn.Sequential):
    """A network that puts images, told apart by their brightness, in classes of our choice."""

    def __init__(self, classes: list[int]) -> None:
        super().__init__()
        self.classes = classes

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        rank = images[:, 0, 0, 0].argsort().argsort()
        return nn.functional.one_hot(torch.tensor(self.classes)[rank], 10).float()


def test_accuracy_difference_and_agreement_are_counted_over_all_test_images() -> None:
    pixels = (
        np.zeros((4, 32, 32, 3), dtype=np.uint8) + np.arange(4, dtype=np.uint8)[:, None, None, None]
    )
    test = Images(pixels, np.array([5, 6, 7, 8]), (0.0,) * 3, (1.0,) * 3, torch.device("cpu"))
    networks = {"float32": Picks([5, 6, 7, 0]), "weights": Picks([5, 6, 1, 8])}
    networks |= {"weights+activations": Picks([5, 1, 1, 0])}
    rows = [tuple(row.values()) for row in compare(networks, test)]
    assert rows == [
        ("float32", 75.0, 0.0, 100.0, 4),
        ("weights", 75.0, 0.0, 50.0, 4),
        ("weights+activations", 25.0, -50.0, 50.0, 4),
    ]


def test_no_stage_costs_more_than_a_point_on_a_network_that_works(study: Path) -> None:
    rows = document(study)["stages"]
    assert [row["stage"] for row in rows] == STAGES
    assert rows[0]["accuracy_percent"] > 90
    for row in rows:
        assert row["test_images"] == 297
        assert abs(row["difference_points"]) <= 1.1
        assert row["agreement_percent"] >= 98


def test_the_ledger_holds_one_row_per_layer_and_its_scales_fit_its_ranges(study: Path) -> None:
    found = document(study)
    assert [row["layer"] for row in found["layers"]] == ["conv1", "conv2", "fc1", "fc2", "fc3"]
    previous = found["input"]["scale"]
    assert previous * max(map(abs, found["input"]["range"])) == pytest.approx(127)
    for row in found["layers"]:
        assert row["input_scale"] == pytest.approx(previous)
        assert row["weight_scale"] * max(map(abs, row["weight_range"])) == pytest.approx(127)
        previous = row["accumulator_scale"] * row["output_scale"]
        assert previous * max(map(abs, row["output_range"])) == pytest.approx(127)
        assert row["products_bound"] < 2**24 and row["simulated_in"] == "float32"


def test_the_histograms_count_every_value_of_every_layer(study: Path) -> None:
    entries = {
        (entry["layer"], entry["quantity"]): entry for entry in document(study)["histograms"]
    }
    assert len(entries) == 14 and ("fc3", "after_relu") not in entries
    values = {"conv1": 6 * 28 * 28, "conv2": 16 * 10 * 10, "fc1": 120, "fc2": 84, "fc3": 10}
    weights = {"conv1": 450, "conv2": 2400, "fc1": 48000, "fc2": 10080, "fc3": 840}
    for (layer, quantity), entry in entries.items():
        expected = weights[layer] if quantity == "weights" else 297 * values[layer]
        for histogram in (entry["float"], entry["int8"]):
            assert sum(histogram["counts"]) == expected
            assert len(histogram["bin_edges"]) == len(histogram["counts"]) + 1
        lowest, highest = entry["int8"]["bin_edges"][0], entry["int8"]["bin_edges"][-1]
        assert lowest * entry["scale"] > -128.6 and highest * entry["scale"] < 127.6
        if quantity == "after_relu":
            assert (
                lowest * entry["scale"] == entry["float"]["bin_edges"][0] * entry["scale"] == -0.5
            )


def test_a_seed_gives_the_same_weights_bit_for_bit_and_another_seed_others(study: Path) -> None:
    for name, seed in (("one.pt", 3), ("again.pt", 3), ("other.pt", 4)):
        train(study, name, seed=seed)
    assert (study / "one.pt").read_bytes() == (study / "again.pt").read_bytes()
    assert (study / "one.pt").read_bytes() != (study / "other.pt").read_bytes()


def test_the_summary_tells_how_the_training_went(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = json.loads((study / "weights.pt.json").read_text())
    assert summary["parameters"] == 62_006
    assert [row["epoch"] for row in summary["epochs"]] == [1, 2, 3, 4, 5]
    assert summary["epochs"][-1]["train_loss"] < summary["epochs"][0]["train_loss"]
    float32 = document(study)["stages"][0]["accuracy_percent"]
    assert summary["test_accuracy"] == pytest.approx(float32 / 100)
    train(study, "printed.pt")
    assert "62,006 parameters, seed 0: " in capsys.readouterr().out.splitlines()[-1]


def test_calibration_draws_as_many_training_images_as_asked(study: Path) -> None:
    evaluate(study, "few.json", calibration_images=20)
    few, all_of_them = json.loads((study / "few.json").read_text()), document(study)
    assert (few["calibration_images"], all_of_them["calibration_images"]) == (20, 1500)
    assert few["layers"][0]["output_range"][1] < all_of_them["layers"][0]["output_range"][1]


def test_the_test_images_have_no_say_in_the_scales(study: Path, tmp_path: Path) -> None:
    images = dataset.load(study / "images.npz")
    white = np.full_like(images.test_images, 255)
    changed = dataset.ImageDataset(
        images.train_images, images.train_labels, white, images.test_labels, images.classes
    )
    dataset.save(changed, tmp_path / "images.npz")
    for name in ("manifest.json", "weights.pt"):
        (tmp_path / name).write_bytes((study / name).read_bytes())
    evaluate(tmp_path, "stages.json")
    assert document(tmp_path)["layers"] == document(study)["layers"]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"epochs": 0}, "--epochs and --batch-size of at least 1"),
        ({"batch_size": 0}, "--epochs and --batch-size of at least 1"),
        ({"learning_rate": 1e6}, "training diverged in epoch 1"),
    ],
)
def test_training_that_cannot_work_says_why(
    study: Path, changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(UserError, match=complaint):
        train(study, "never.pt", **changes)
    assert not (study / "never.pt").exists()


def test_more_calibration_images_than_there_are_is_refused(study: Path) -> None:
    with pytest.raises(UserError, match="1501 images cannot be drawn from 1500"):
        evaluate(study, "never.json", calibration_images=1501)


def test_the_manifest_of_another_dataset_is_refused(study: Path, tmp_path: Path) -> None:
    (tmp_path / "images.npz").write_bytes((study / "images.npz").read_bytes())
    files.write_json(tmp_path / "manifest.json", {"train_images": 50000, "test_images": 10000})
    with pytest.raises(UserError, match=r"does not describe .* with its 1500 training"):
        train(tmp_path, "never.pt")


def test_the_table_has_a_row_per_seed_and_stage_in_the_order_of_the_seeds(study: Path) -> None:
    evaluate(study, "second.json", seed=1)
    paths = [str(study / name) for name in ("second.json", "stages.json")]
    tables_quantization.main(["--stages", *paths, "--output", str(study / "table.csv")])
    text = (study / "table.csv").read_text()
    assert text.splitlines()[0] == (
        "seed,stage,accuracy_percent,difference_points,agreement_percent,test_images"
    )
    table = pd.read_csv(study / "table.csv")
    assert table["seed"].tolist() == [0] * 4 + [1] * 4
    assert table["stage"].tolist() == STAGES * 2
    accuracy = document(study)["stages"][3]["accuracy_percent"]
    assert table["accuracy_percent"][3] == pytest.approx(accuracy)


def test_the_table_refuses_a_seed_twice_another_dataset_and_other_files(
    study: Path, tmp_path: Path
) -> None:
    other = document(study) | {"seed": 7, "dataset": {"source": "cifar10", "checksum": "0"}}
    files.write_json(tmp_path / "other.json", other)
    files.write_json(tmp_path / "stranger.json", {"seed": 0})
    for second, complaint in (
        (study / "stages.json", "two of the --stages files are of seed 0"),
        (tmp_path / "other.json", "made on different datasets"),
        (tmp_path / "stranger.json", "was not written by quantize_evaluate.py"),
    ):
        paths = [str(study / "stages.json"), str(second)]
        with pytest.raises(UserError, match=complaint):
            tables_quantization.main(["--stages", *paths, "--output", str(tmp_path / "t.csv")])


def test_the_figure_shows_all_layers_and_is_the_same_bytes_each_time(
    study: Path, tmp_path: Path
) -> None:
    for name in ("one.svg", "again.svg"):
        plot_quantization_histograms.main(
            ["--stages", str(study / "stages.json"), "--output", str(tmp_path / name)]
        )
    drawing = (tmp_path / "one.svg").read_text()
    assert drawing == (tmp_path / "again.svg").read_text()
    assert "<svg" in drawing and "<dc:date>" not in drawing
    figure = plot_quantization_histograms.draw(document(study))
    assert [axes.get_ylabel().split("\n")[0] for axes in figure.axes[::3]] == [
        *("conv1", "conv2", "fc1", "fc2", "fc3")
    ]


def test_a_drawn_bin_holds_the_share_of_four_steps() -> None:
    # Steps -5 to 3 at 2 steps per unit; the bins begin at -8, -4, 0.
    edges = [(step - 0.5) / 2 for step in range(-5, 5)]
    histogram = plot_quantization_histograms.Histogram(
        bin_edges=edges, counts=[1, 0, 2, 0, 1, 10, 3, 2, 1]
    )
    shares, bounds = plot_quantization_histograms._shares(histogram, 2.0)
    assert shares.tolist() == [0.05, 0.15, 0.8]
    assert bounds.tolist() == [-4.25, -2.25, -0.25, 1.75]


def test_a_broken_weights_file_ends_the_script_with_one_sentence(
    study: Path, tmp_path: Path
) -> None:
    (tmp_path / "weights.pt").write_bytes(b"no weights")
    arguments = ["--weights", str(tmp_path / "weights.pt"), "--seed", "0"]
    arguments += ["--calibration-images", "0", "--output", str(tmp_path / "stages.json")]
    ended = subprocess.run(
        [sys.executable, quantize_evaluate.__file__, *images_of(study), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: ") and len(ended.stderr.splitlines()) == 1
    assert not (tmp_path / "stages.json").exists()
