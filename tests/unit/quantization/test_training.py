"""The training of the network that is quantized, as the rule runs it."""

import json
from pathlib import Path
from typing import Any

import pytest

from examples.made_here import assert_made_here
from examples.quantized_digits import document, train
from scaling.core import files
from scaling.core.errors import UserError


@pytest.fixture(scope="module")
def study(quantized_digits: Path) -> Path:
    return quantized_digits


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
    assert_made_here(summary["environment"])
    assert summary["epochs"][-1]["train_loss"] < summary["epochs"][0]["train_loss"]
    float32 = document(study)["float32"]["accuracy_percent"]
    assert summary["test_accuracy"] == pytest.approx(float32 / 100)
    train(study, "printed.pt")
    assert "62,006 parameters, seed 0: " in capsys.readouterr().out.splitlines()[-1]


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


def test_the_manifest_of_another_dataset_is_refused(study: Path, tmp_path: Path) -> None:
    (tmp_path / "images.npz").write_bytes((study / "images.npz").read_bytes())
    files.write_json(tmp_path / "manifest.json", {"train_images": 50000, "test_images": 10000})
    with pytest.raises(UserError, match=r"does not describe .* with its 1500 training"):
        train(tmp_path, "never.pt")
