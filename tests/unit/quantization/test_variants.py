"""Quantized variants from the images to their records, as the rule runs them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.made_here import assert_made_here
from examples.quantized_digits import LAST, STAGES, document, evaluate
from scaling.core.errors import UserError
from scaling.data import dataset


def test_no_stage_costs_more_than_a_point_on_a_network_that_works(quantized_digits: Path) -> None:
    for name in STAGES:
        record = document(quantized_digits, name)
        assert record["float32"]["accuracy_percent"] > 90
        assert record["test_images"] == 297
        assert abs(record["difference_points"]) <= 1.1
        assert record["agreement_percent"] >= 98


def test_every_test_logit_is_computed_in_integers_too_and_none_differs(
    quantized_digits: Path,
) -> None:
    assert document(quantized_digits, "weights")["exactness"] is None
    for name in ("weights+activations", LAST):
        assert document(quantized_digits, name)["exactness"] == {"logits": 2970, "differing": 0}


def test_int8_is_more_than_3_9_times_smaller(quantized_digits: Path) -> None:
    record = document(quantized_digits)
    assert record["float32_bytes"] == 4 * 62_006
    # A byte for each weight, four for each bias, each scale and the scale of the images.
    assert record["packed_bytes"] == 61_770 + 4 * 236 + 4 * 5 + 4
    assert record["float32_bytes"] / record["packed_bytes"] > 3.9


def test_a_record_names_commit_versions_and_times(quantized_digits: Path) -> None:
    for name in STAGES:
        assert_made_here(document(quantized_digits, name)["environment"])


def test_the_histograms_count_every_value_of_every_layer(quantized_digits: Path) -> None:
    entries = {
        (entry["layer"], entry["quantity"]): entry
        for entry in document(quantized_digits)["histograms"]
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
            assert lowest == entry["float"]["bin_edges"][0]
            assert lowest * entry["scale"] == pytest.approx(-0.5)


def test_calibration_draws_as_many_training_images_as_asked(quantized_digits: Path) -> None:
    evaluate(quantized_digits, "few.json", calibration_images=20)
    few, all_of_them = (
        json.loads((quantized_digits / "few.json").read_text()),
        document(quantized_digits),
    )
    assert (few["calibration_images"], all_of_them["calibration_images"]) == (20, 1500)
    assert few["layers"][0]["output_range"][1] < all_of_them["layers"][0]["output_range"][1]


def test_the_test_images_have_no_say_in_the_scales(quantized_digits: Path, tmp_path: Path) -> None:
    images = dataset.load(quantized_digits / "images.npz")
    white = np.full_like(images.test_images, 255)
    changed = dataset.ImageDataset(
        images.train_images, images.train_labels, white, images.test_labels, images.classes
    )
    dataset.save(changed, tmp_path / "images.npz")
    for name in ("manifest.json", "weights.pt"):
        (tmp_path / name).write_bytes((quantized_digits / name).read_bytes())
    evaluate(tmp_path, f"{LAST}.json")
    kept = ("weight_scale", "output_scale", "output_range", "bias_error_steps", "packed_bytes")
    for changed, row in zip(
        document(tmp_path)["layers"], document(quantized_digits)["layers"], strict=True
    ):
        assert [changed[key] for key in kept] == [row[key] for key in kept]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"calibration_images": 1501}, "1501 images cannot be drawn from 1500"),
        ({"weights": "manifest.json"}, "is not a weights file that can be read"),
        ({"scheme": {"weight_bits": 1}}, "the scheme is wrong: weight_bits is 1"),
        ({"scheme": {"logits": "float"}, "histograms": True}, "has no int8 activations, logits"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(
    quantized_digits: Path, changes: dict[str, Any], complaint: str
) -> None:
    if "weights" in changes:
        changes = {"weights": quantized_digits / changes["weights"]}
    with pytest.raises(UserError, match=complaint):
        evaluate(quantized_digits, "never.json", **changes)
    assert not (quantized_digits / "never.json").exists()
