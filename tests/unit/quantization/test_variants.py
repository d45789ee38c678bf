"""Quantized variants from the images to their records, as the rule runs them."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import quantize_evaluate
from examples.made_here import assert_made_here
from examples.quantized_digits import LAST, STAGES, document, evaluate, images_of
from scaling.core.errors import UserError
from scaling.data import dataset


@pytest.fixture(scope="module")
def study(quantized_digits: Path) -> Path:
    return quantized_digits


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


def test_a_record_names_commit_versions_and_times(study: Path) -> None:
    for name in STAGES:
        assert_made_here(document(study, name)["environment"])


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


def test_histograms_need_int8_everywhere(study: Path) -> None:
    with pytest.raises(UserError, match="weights has no int8 activations, logits and weights with"):
        evaluate(study, "never.json", "weights", {"activation_bits": None}, histograms=True)


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


def test_more_calibration_images_than_there_are_is_refused(study: Path) -> None:
    with pytest.raises(UserError, match="1501 images cannot be drawn from 1500"):
        evaluate(study, "never.json", calibration_images=1501)


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
