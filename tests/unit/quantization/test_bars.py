"""What int8 and fewer bits cost on CIFAR-10, held to the study of it that is stored here."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from examples.readme import section
from scaling.core import numbers as fmt
from scaling.core.quantization_records import read_backends, read_variants
from scaling.tables.experiments import quantization, quantization_backends
from scaling.tables.experiments.quantization_cost import Cost, cost

ROOT = Path(__file__).parents[3]
STUDY = ROOT / "studies/quantization-cifar10"
ROW = re.compile(r"^\| .* \| `([\w+-]+)` \| (.*) \|$", re.MULTILINE)
INT8 = "weights+activations+bias"


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    return read_variants(sorted(STUDY.glob("quantization/*/*/*.json")))


@pytest.fixture(scope="module")
def table(documents: list[dict[str, Any]]) -> pd.DataFrame:
    return quantization.variants(documents)


def variant(table: pd.DataFrame, name: str) -> Cost:
    rows = table[table["stage"] == name]
    assert rows["seed"].tolist() == [0, 1, 2] and set(rows["test_images"]) == {10_000}
    return cost(rows)


def test_int8_with_int32_biases_loses_next_to_nothing_and_keeps_the_classes(
    table: pd.DataFrame,
) -> None:
    found = variant(table, INT8)
    assert found.difference_points >= -0.3 and found.difference_range[0] >= -0.6
    assert found.agreement_percent >= 96
    assert variant(table, "best-float-logits").agreement_percent >= 98


def test_int8_weights_alone_change_nothing(table: pd.DataFrame) -> None:
    assert abs(variant(table, "weights").difference_points) <= 0.1


@pytest.mark.parametrize(
    ("name", "bits", "most_lost"),
    [("w4a8-gptq", (4, 8), 0.5), ("w4a4-gptq", (4, 4), 1.0), ("w3a8-gptq", (3, 8), 1.5)],
)
def test_fewer_bits_lose_little(
    table: pd.DataFrame, name: str, bits: tuple[int, int], most_lost: float
) -> None:
    rows = table[table["stage"] == name]
    assert {*zip(rows["weight_bits"], rows["activation_bits"], strict=True)} == {bits}
    assert variant(table, name).difference_points >= -most_lost


def test_int8_is_3_9_times_smaller(table: pd.DataFrame) -> None:
    assert table.loc[table["stage"] == INT8, "compression"].min() >= 3.9


def test_every_logit_equals_the_integer_pipelines(table: pd.DataFrame) -> None:
    compared = table[table["logits_compared"].notna()]
    assert set(compared["stage"]) >= {INT8, "best-float-logits", "w4a4-gptq", "w3a8-gptq"}
    assert set(compared["logits_compared"]) == {100_000}
    assert compared["logits_differing"].sum() == 0
    count = f"Each of the {compared['logits_compared'].sum():,} logits"
    assert count in section("quantization-cifar10")


def test_no_layer_of_int8_is_noisier_than_30_db_or_clips_a_calibration_image(
    table: pd.DataFrame,
) -> None:
    rows = table[table["stage"] == INT8]
    assert rows["weight_sqnr_db"].min() >= 30 and rows["sqnr_after_relu_db"].min() >= 30
    assert rows["clipped_share_calibration"].max() == 0


def test_what_accuracy_passes_another_diagnostic_reveals(documents: list[dict[str, Any]]) -> None:
    paired = quantization.paired(documents)
    beside = paired[paired["stage"].str.startswith("mistake-")].set_index("stage")
    errors = beside["difference_points"] / beside["standard_error_points"]
    revealed = quantization.variants(documents).set_index("stage")["revealed_by"]
    for name in ("mistake-255_for_127", "mistake-test_data"):
        assert errors[name] > -2
        assert all(set(names.split("; ")) - {"accuracy"} for names in revealed[name])
    for name in ("mistake-activation_scale", "mistake-bias_unscaled", "mistake-no_product"):
        assert errors[name] < -10


def test_every_figure_of_the_readme_is_that_of_the_records(table: pd.DataFrame) -> None:
    lines = ROW.findall(section("quantization-cifar10"))
    assert {"weights", INT8, "best-float-logits", "w4a4-gptq"} <= {name for name, _ in lines}
    for name, shown in lines:
        found = variant(table, name)
        smaller = table.loc[table["stage"] == name, "compression"].mean()
        assert shown.split(" | ") == [
            *(found.difference, found.reach),
            *(f"{found.agreement_percent:.1f}", f"{smaller:.2f}×"),
        ], name


def test_the_readme_names_the_peers_by_the_records() -> None:
    paths = sorted(STUDY.glob("quantization/*/peers.json"))
    peers = quantization_backends.backends(read_backends(paths))
    words = " ".join(section("quantization-cifar10").split())
    assert len(paths) == 3 and set(peers["threads"]) == {1}
    for engine in ("onnxruntime", "torchao"):
        rows = peers[(peers["engine"] == engine) & (peers["precision"] == "int8")]
        assert f"ends {fmt.points(rows['difference_points'].mean())} points" in words
        assert f"{rows['times_smaller'].mean():.2f}× smaller" in words
        for batch in (1, 256):
            ratios = rows[f"batch_{batch}_ratio"]
            assert f"{ratios.min():.2f} to {ratios.max():.2f} times" in words
