"""Quantized variants from the images to the tables, as the rules run them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import plot_quantization_histograms
import quantize_evaluate
import quantize_train
import tables_quantization
from scaling import dataset, files
from scaling.errors import UserError
from scaling.sources import digits

STAGES: dict[str, dict[str, Any]] = {
    "weights": {"activation_bits": None},
    "weights+activations": {"bias": "float"},
    "weights+activations+bias": {},
}
LAST = "weights+activations+bias"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the digits, a network trained on them for a few seconds, and its stages."""
    folder = tmp_path_factory.mktemp("study")
    images = digits.read()
    dataset.save(images, folder / "images.npz")
    files.write_json(folder / "manifest.json", dataset.manifest(images, "digits", "scikit-learn"))
    train(folder, "weights.pt", epochs=5)
    for name, scheme in STAGES.items():
        evaluate(folder, f"{name}.json", name, scheme, histograms=name == LAST)
    return folder


def train(folder: Path, name: str, **changes: Any) -> None:
    options = {"seed": 0, "epochs": 1, "batch-size": 32, "learning-rate": 0.02, "momentum": 0.9}
    options |= {key.replace("_", "-"): value for key, value in changes.items()}
    named = [text for key, value in options.items() for text in (f"--{key}", str(value))]
    output = ["--output", str(folder / name), "--summary", str(folder / f"{name}.json")]
    quantize_train.main([*images_of(folder), *named, *output])


def evaluate(
    folder: Path,
    output: str,
    variant: str = LAST,
    scheme: dict[str, Any] | None = None,
    *,
    calibration_images: int = 0,
    seed: int = 0,
    histograms: bool = False,
) -> None:
    quantize_evaluate.main(
        [
            *images_of(folder),
            *("--weights", str(folder / "weights.pt"), "--seed", str(seed)),
            *("--variant", variant, "--scheme", json.dumps(scheme or {})),
            *("--calibration-images", str(calibration_images), "--output", str(folder / output)),
            *(["--histograms"] if histograms else []),
        ]
    )


def images_of(folder: Path) -> list[str]:
    paths = "--dataset", str(folder / "images.npz"), "--manifest", str(folder / "manifest.json")
    return [*paths, "--device", "cpu"]


def document(folder: Path, variant: str = LAST) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{variant}.json").read_text())
    return found


def test_no_stage_costs_more_than_a_point_on_a_network_that_works(study: Path) -> None:
    for name in STAGES:
        record = document(study, name)
        assert record["float32"]["accuracy_percent"] > 90
        assert record["test_images"] == 297
        assert abs(record["difference_points"]) <= 1.1
        assert record["agreement_percent"] >= 98


def test_every_test_logit_is_computed_in_integers_too_and_none_differs(study: Path) -> None:
    assert document(study, "weights")["exactness"] is None
    for name in ("weights+activations", LAST):
        assert document(study, name)["exactness"] == {"logits": 2970, "differing": 0}


def test_int8_is_more_than_3_9_times_smaller(study: Path) -> None:
    record = document(study)
    assert record["float32_bytes"] == 4 * 62_006
    # A byte for each weight, four for each bias, each scale and the scale of the images.
    assert record["packed_bytes"] == 61_770 + 4 * 236 + 4 * 5 + 4
    assert record["float32_bytes"] / record["packed_bytes"] > 3.9


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
        assert row["products_bound"] < 2**24 and row["float32_exact"]
        assert row["clipped_share_calibration"] == 0


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
    float32 = document(study)["float32"]["accuracy_percent"]
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
    evaluate(tmp_path, f"{LAST}.json")
    kept = ("weight_scale", "output_scale", "output_range", "bias_error_steps", "packed_bytes")
    for changed, row in zip(document(tmp_path)["layers"], document(study)["layers"], strict=True):
        assert [changed[key] for key in kept] == [row[key] for key in kept]


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


def tabulate(study: Path, folder: Path, records: list[Path]) -> tuple[pd.DataFrame, pd.DataFrame]:
    outputs = [*("--output", str(folder / "table.csv")), *("--layers", str(folder / "layers.csv"))]
    outputs += ["--paired", str(folder / "paired.csv")]
    tables_quantization.main(["--records", *map(str, records), *outputs])
    return pd.read_csv(folder / "table.csv"), pd.read_csv(folder / "layers.csv")


def test_the_table_has_a_row_per_seed_and_variant_in_the_order_of_the_seeds(
    study: Path, tmp_path: Path
) -> None:
    for name, scheme in STAGES.items():
        evaluate(study, f"second-{name}.json", name, scheme, seed=1)
    evaluate(study, "wrong.json", "wrong", {"mistake": "255_for_127"})
    records = [study / f"second-{name}.json" for name in STAGES]
    records += [study / f"{name}.json" for name in [*STAGES, "wrong"]]
    table, layers = tabulate(study, tmp_path, records)
    assert (
        (tmp_path / "table.csv")
        .read_text()
        .startswith(
            "seed,stage,accuracy_percent,difference_points,agreement_percent,test_images,standard_error"
        )
    )
    assert table["seed"].tolist() == [0] * 5 + [1] * 4
    assert table["stage"].tolist() == ["float32", *STAGES, "wrong", "float32", *STAGES]
    assert table["accuracy_percent"][3] == pytest.approx(document(study)["accuracy_percent"])
    assert table["compression"].round(2).tolist() == [1, *[3.95] * 4, 1, *[3.95] * 3]
    assert table["logits_differing"].dropna().tolist() == [0] * 5
    assert table["sqnr_after_relu_db"][4] < table["sqnr_after_relu_db"][3] - 3
    assert "SQNR" in table["revealed_by"][4] and table["revealed_by"].notna().sum() == 1

    assert table["mean_seeds"].dropna().tolist() == [2, 2, 2, 1, 2, 2, 2]
    paired = pd.read_csv(tmp_path / "paired.csv")
    assert list(zip(paired["stage"], paired["reference_stage"], paired["seeds"], strict=True)) == [
        *(("weights+activations", "weights", 2), (LAST, "weights+activations", 2)),
        ("wrong", LAST, 1),
    ]
    changes = table.groupby("stage")["accuracy_percent"].mean().diff()
    assert paired["difference_points"][1] == pytest.approx(changes[LAST])

    own = layers[(layers["seed"] == 0) & (layers["stage"] == LAST)]
    assert own["layer"].tolist() == ["images", "conv1", "conv2", "fc1", "fc2", "fc3"]
    assert own["top_step"].tolist() == pytest.approx([127] * 6)
    assert own["step_minimum"].tolist() == [-128] * 6 and own["step_maximum"].tolist() == [127] * 6
    assert own["packed_bytes"].sum() + 4 == document(study)["packed_bytes"]
    assert len(layers) == 5 + 6 + 6 + 6 + 5 + 6 + 6


def test_a_study_from_before_there_were_variants_keeps_the_rows_it_has(
    study: Path, tmp_path: Path
) -> None:
    columns = ["stage", "accuracy_percent", "difference_points", "agreement_percent"]
    columns += ["test_images"]
    stages = [
        dict(zip(columns, row, strict=True))
        for row in (("float32", 55.0, 0.0, 100.0, 297), (LAST, 54.0, -1.0, 97.0, 297))
    ]
    kept = {key: document(study)[key] for key in ("dataset", "layers", "histograms")}
    files.write_json(tmp_path / "stages.json", {"seed": 0, "stages": stages, **kept})
    table, layers = tabulate(study, tmp_path, [tmp_path / "stages.json"])
    assert table["stage"].tolist() == ["float32", LAST]
    assert table["difference_points"].tolist() == [0, -1]
    assert table["standard_error_points"].isna().all()
    assert layers.empty and "weight_sqnr_db" in layers.columns
    assert pd.read_csv(tmp_path / "paired.csv").empty


def test_the_tables_refuse_a_variant_twice_another_dataset_or_network_and_other_files(
    study: Path, tmp_path: Path
) -> None:
    own = document(study)
    other = own | {"seed": 7, "dataset": {"source": "cifar10", "checksum": "0"}}
    files.write_json(tmp_path / "other.json", other)
    network = own | {"variant": "new", "float32": {"accuracy_percent": 12.0}}
    files.write_json(tmp_path / "network.json", network)
    files.write_json(tmp_path / "stranger.json", {"seed": 0})
    for second, complaint in (
        (study / f"{LAST}.json", r"are of seed 0, weights\+activations\+bias"),
        (tmp_path / "other.json", "made on different datasets"),
        (tmp_path / "network.json", "of seed 0 are of different networks, .* 12.00 %, "),
        (tmp_path / "stranger.json", "was not written by quantize_evaluate.py"),
    ):
        with pytest.raises(UserError, match=complaint):
            tabulate(study, tmp_path, [study / f"{LAST}.json", second])


def test_histograms_need_int8_everywhere_and_the_figure_needs_histograms(
    study: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="weights has no int8 activations, logits and weights with"):
        evaluate(study, "never.json", "weights", {"activation_bits": None}, histograms=True)
    with pytest.raises(UserError, match=r"the record of weights\+activations has no histograms"):
        plot_quantization_histograms.draw(document(study, "weights+activations"))


def test_the_figure_shows_all_layers_and_is_the_same_bytes_each_time(
    study: Path, tmp_path: Path
) -> None:
    for name in ("one.svg", "again.svg"):
        plot_quantization_histograms.main(
            ["--record", str(study / f"{LAST}.json"), "--output", str(tmp_path / name)]
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
    shares, bounds = plot_quantization_histograms._shares(histogram, 2.0, 4)
    assert shares.tolist() == [0.05, 0.15, 0.8]
    assert bounds.tolist() == [-4.25, -2.25, -0.25, 1.75]


def test_fewer_bits_are_drawn_step_by_step_between_their_own_limits(study: Path) -> None:
    evaluate(study, "w4a4.json", "w4a4", {"weight_bits": 4, "activation_bits": 4}, histograms=True)
    figure = plot_quantization_histograms.draw(document(study, "w4a4"))
    found = document(study, "w4a4")["histograms"]
    entries = {(entry["layer"], entry["quantity"]): entry for entry in found}
    for axes, quantity, first in zip(
        figure.axes, ["weights", "before_relu"], [-7, -8], strict=False
    ):
        entry = entries["conv1", quantity]
        limits = [line.get_xdata()[0] * entry["scale"] for line in axes.lines]
        assert limits == pytest.approx([first - 0.5, 7.5])
        # One step a bin: as many as the record counts.
        assert len(axes.patches[0].get_data().values) == len(entry["int8"]["counts"])


def test_a_broken_weights_file_ends_the_script_with_one_sentence(
    study: Path, tmp_path: Path
) -> None:
    (tmp_path / "weights.pt").write_bytes(b"no weights")
    arguments = ["--weights", str(tmp_path / "weights.pt"), "--seed", "0", "--variant", "plain"]
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
