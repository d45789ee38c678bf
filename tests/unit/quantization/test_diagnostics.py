"""The known mistakes on one network trained on digits, and what gives each of them away."""

import json
from typing import Any, get_args

import pytest
from torch import nn

from scaling.config.scheme import MISTAKES, Mistake, Scheme
from scaling.core.paired_accuracy import decode
from scaling.data.batches import Images
from scaling.quantization.variant import make, measure
from scaling.tables.experiments.quantization_diagnostics import DIAGNOSTICS, revealed_by

Records = dict[str | None, dict[str, Any]]


def test_every_mistake_of_the_scheme_is_described() -> None:
    assert list(MISTAKES) == list(get_args(Mistake))


def test_the_sound_variant_keeps_every_invariant(mistakes: Records) -> None:
    sound = mistakes[None]
    json.dumps(sound, allow_nan=False)
    assert sound["input"]["clipped_share_calibration"] == 0
    for row in sound["layers"]:
        assert row["top_step"] == pytest.approx(127, rel=1e-6)
        assert row["clipped_share_calibration"] == 0
        assert row["bias_error_steps"] <= 0.5
        # Before ReLU the clamp may take values below -128 steps, which ReLU makes zero anyway.
        whole = [] if row["clipped_share_before_relu"] else ["sqnr_before_relu_db"]
        for column in ("weight_sqnr_db", "sqnr_after_relu_db", *whole):
            assert row[column] >= 30, (row["layer"], column)
        assert row["accumulator_bound"] < 2**31 and row["float32_exact"]
    assert revealed_by(sound, sound) == []


def test_no_mistake_makes_the_integer_pipeline_disagree(
    mistakes: Records,
) -> None:
    for record in mistakes.values():
        assert record["exactness"] == {"logits": 2970, "differing": 0}


def test_255_for_127_costs_no_accuracy_and_many_decibels(
    mistakes: Records,
) -> None:
    sound, wrong = mistakes[None], mistakes["255_for_127"]
    assert abs(wrong["difference_points"]) < 2
    assert "accuracy" not in revealed_by(wrong, sound)
    for column in ("sqnr_after_relu_db", "propagated_sqnr_db"):
        drops = [
            right[column] - row[column]
            for right, row in zip(sound["layers"], wrong["layers"], strict=True)
        ]
        assert min(drops) > 3 and max(drops) > 6, (column, drops)


@pytest.mark.parametrize(
    ("mistake", "expected"),
    [
        ("activation_scale", {"accuracy", "SQNR", "clipped share", "S·o·max"}),
        ("bias_scale", {"propagated SQNR", "bias"}),
        ("255_for_127", {"SQNR", "clipped share", "S·o·max"}),
        ("bias_unscaled", {"propagated SQNR", "bias"}),
        ("no_product", {"SQNR", "S·o·max", "bias"}),
        ("one_image", {"clipped share", "calibration images", "calibration checksum"}),
        ("test_data", {"clipped share", "calibration images", "calibration checksum"}),
    ],
)
def test_every_mistake_is_revealed(mistakes: Records, mistake: str, expected: set[str]) -> None:
    found = revealed_by(mistakes[mistake], mistakes[None])
    assert expected <= set(found) <= set(DIAGNOSTICS)


def test_calibration_on_test_data_shows_where_the_data_differ(
    mistakes: Records,
) -> None:
    rows = mistakes["test_data"]["layers"]
    assert all(row["clipped_share_test"] == 0 for row in rows)
    assert any(row["clipped_share_calibration"] > 0 for row in rows)


def test_as_many_test_images_as_training_images_are_told_by_their_checksum(
    trained: tuple[nn.Sequential, Images, Images],
) -> None:
    network, training, test = trained
    few = training.sample(len(test), seed=3)
    found = {}
    for mistake in (None, "test_data"):
        variant = make(network, Scheme.of({"mistake": mistake}), few, test, seed=0)
        found[mistake] = measure(network, variant, few, test)
    wrong, sound = found["test_data"], found[None]
    assert wrong["calibration_images"] == sound["calibration_images"]
    assert wrong["training_checksum"] == sound["calibration_checksum"] == few.checksum()
    assert "calibration checksum" in revealed_by(wrong, sound)
    assert "calibration images" not in revealed_by(wrong, sound)


def test_the_record_keeps_the_classes_that_its_figures_come_from(
    mistakes: Records,
) -> None:
    record = mistakes["bias_unscaled"]
    classes = {name: decode(text) for name, text in record["classes"].items()}
    right = {name: 100 * (each == classes["labels"]).mean() for name, each in classes.items()}
    assert right["variant"] == pytest.approx(record["accuracy_percent"])
    assert right["float32"] == pytest.approx(record["float32"]["accuracy_percent"])
    agreement = 100 * (classes["variant"] == classes["float32"]).mean()
    assert agreement == pytest.approx(record["agreement_percent"])
