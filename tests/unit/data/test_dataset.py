"""The study's dataset: what it accepts, its file, its manifest, and the two command lines."""

import errno
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dataset_fetch
import dataset_prepare
from scaling.core.errors import UserError
from scaling.data import dataset
from scaling.data.dataset import ImageDataset


def small_dataset(**changes: Any) -> ImageDataset:
    """Two classes, three train and two test images; the first train image is white."""
    train_images = np.zeros((3, 32, 32, 3), dtype=np.uint8)
    train_images[0] = 255
    arrays: dict[str, Any] = {
        "train_images": train_images,
        "train_labels": np.array([0, 1, 1], dtype=np.int64),
        "test_images": np.full((2, 32, 32, 3), 7, dtype=np.uint8),
        "test_labels": np.array([1, 0], dtype=np.int64),
        "classes": ["cat", "dog"],
    }
    return ImageDataset(**{**arrays, **changes})


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"train_labels": np.array([0, 0, 0])}, "class 'dog' has no train image"),
        ({"test_labels": np.array([1, 1])}, "class 'cat' has no test image"),
        ({"test_labels": np.array([1, 2])}, "test label 2 is outside the 2 classes"),
        ({"train_labels": np.array([0, 1, -1])}, "train label -1 is outside the 2 classes"),
        ({"train_labels": np.array([0, 1])}, "one for each of 3 images, not int64 of shape [2]"),
        ({"test_labels": np.array([1, 0], dtype=np.int32)}, "test labels must be int64"),
        (
            {"train_images": np.zeros((3, 3, 32, 32), dtype=np.uint8)},
            "train images must be uint8 of shape [N, 32, 32, 3], not uint8 of shape [3, 3, 32, 32]",
        ),
        ({"test_images": np.zeros((2, 32, 32, 3))}, "not float64 of shape [2, 32, 32, 3]"),
        ({"classes": ["cat", "cat"]}, "class names must be distinct, not cat, cat"),
    ],
)
def test_a_dataset_that_does_not_fit_is_refused_with_the_reason(
    changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(UserError) as caught:
        small_dataset(**changes)
    assert complaint in str(caught.value)


def test_a_saved_dataset_is_loaded_unchanged(tmp_path: Path) -> None:
    saved = small_dataset()
    dataset.save(saved, tmp_path / "new" / "images.npz")
    loaded = dataset.load(tmp_path / "new" / "images.npz")
    for name in ("train_images", "train_labels", "test_images", "test_labels"):
        assert getattr(loaded, name).dtype == getattr(saved, name).dtype
        assert np.array_equal(getattr(loaded, name), getattr(saved, name))
    assert loaded.classes == ["cat", "dog"]


def test_a_missing_dataset_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent\.npz does not exist"):
        dataset.load(tmp_path / "absent.npz")


@pytest.mark.parametrize("kept", [0, 1, 100, 5_000, -1_000, -1])
def test_a_truncated_dataset_is_named_with_the_way_out(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "images.npz"
    dataset.save(small_dataset(), path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(UserError, match=r"images\.npz is truncated or damaged; delete it"):
        dataset.load(path)


def test_a_changed_byte_in_a_dataset_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "images.npz"
    dataset.save(small_dataset(), path)
    content = bytearray(path.read_bytes())
    content[2_000] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match="truncated or damaged"):
        dataset.load(path)


def test_an_archive_or_array_of_something_else_is_not_a_dataset(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", weights=np.zeros(3))
    with (tmp_path / "array.npz").open("wb") as stream:
        np.save(stream, np.zeros(3))
    for name in ("other.npz", "array.npz"):
        with pytest.raises(UserError, match=f"{name} is truncated or damaged"):
            dataset.load(tmp_path / name)


def test_a_full_disk_leaves_the_dataset_of_before_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "images.npz"
    path.write_bytes(b"of before")

    def write_until_full(stream: Any, **arrays: Any) -> None:
        stream.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", write_until_full)
    with pytest.raises(UserError, match=r"cannot write .*images\.npz: No space left on device"):
        dataset.save(small_dataset(), path)
    assert [file.name for file in tmp_path.iterdir()] == ["images.npz"]
    assert path.read_bytes() == b"of before"


def test_the_manifest_describes_the_dataset() -> None:
    manifest = dataset.manifest(small_dataset(), "images", "made by hand")
    checksum = manifest.pop("checksum")
    # One white image of three: mean 1/3, variance 1/3 · 2/3.
    assert manifest.pop("mean") == pytest.approx([1 / 3] * 3)
    assert manifest.pop("std") == pytest.approx([2**0.5 / 3] * 3)
    assert manifest == {
        "source": "images",
        "origin": "made by hand",
        "train_images": 3,
        "test_images": 2,
        "classes": ["cat", "dog"],
        "image_shape": [32, 32, 3],
        "train_counts": [1, 2],
        "test_counts": [1, 1],
    }
    by_hand = hashlib.sha256(b'[["cat", "dog"], [3, 2]]')
    by_hand.update(b"\xff" * 3072 + b"\0" * 6144)
    by_hand.update(b"".join(label.to_bytes(8, "little") for label in (0, 1, 1)))
    by_hand.update(b"\7" * 6144)
    by_hand.update(b"".join(label.to_bytes(8, "little") for label in (1, 0)))
    assert checksum == by_hand.hexdigest()


def test_mean_and_std_are_those_of_each_channel() -> None:
    images = np.random.default_rng(0).integers(0, 256, (1_003, 32, 32, 3), dtype=np.uint8)
    images[..., 2] //= 4
    manifest = dataset.manifest(
        small_dataset(train_images=images, train_labels=np.arange(1_003) % 2), "images", ""
    )
    assert manifest["mean"] == pytest.approx((images / 255).mean(axis=(0, 1, 2)))
    assert manifest["std"] == pytest.approx((images / 255).std(axis=(0, 1, 2)))


@pytest.mark.parametrize(
    "changes",
    [
        {"test_images": np.full((2, 32, 32, 3), 8, dtype=np.uint8)},
        {"test_labels": np.array([0, 1])},
        {"classes": ["cat", "cow"]},
    ],
)
def test_the_checksum_changes_with_anything_in_the_dataset(changes: dict[str, Any]) -> None:
    before = dataset.manifest(small_dataset(), "images", "")["checksum"]
    assert dataset.manifest(small_dataset(**changes), "images", "")["checksum"] != before


def fetch(folder: Path, *options: str) -> Path:
    output = folder / "source.json"
    dataset_fetch.main([*options, "--raw-folder", f"{folder}/raw", "--output", str(output)])
    return output


def prepare(folder: Path, *options: str) -> dict[str, Any]:
    dataset_prepare.main(
        [f"--fetched={folder}/source.json", f"--output={folder}/images.npz",
         f"--manifest={folder}/manifest.json", *options]
    )  # fmt: skip
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return manifest


def test_synthetic_data_are_fetched_without_a_download_and_prepared(tmp_path: Path) -> None:
    fetched = json.loads(fetch(tmp_path, "--source", "synthetic").read_text())
    assert (fetched["source"], fetched["path"]) == ("synthetic", None)
    manifest = prepare(tmp_path, "--train-images", "40", "--test-images", "20", "--seed", "5")
    assert (manifest["train_images"], manifest["test_images"]) == (40, 20)
    assert manifest["origin"] == f"{fetched['origin']}, seed 5"
    assert len(dataset.load(tmp_path / "images.npz").train_images) == 40
    assert not (tmp_path / "raw").exists()


def test_digits_are_fetched_and_prepared(tmp_path: Path) -> None:
    fetch(tmp_path, "--source", "digits")
    manifest = prepare(tmp_path)
    assert (manifest["source"], manifest["train_images"]) == ("digits", 1500)


def test_a_path_for_a_source_that_takes_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the source digits takes no --path"):
        fetch(tmp_path, "--source", "digits", "--path", str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_at_least_one_attempt_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        fetch(tmp_path, "--source", "digits", "--attempts", "0")
    assert "--attempts must be at least 1, not 0" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["[]", '{"source": "images", "path": null, "origin": "x"}'])
def test_a_fetch_note_that_says_something_else_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "source.json").write_text(content)
    with pytest.raises(UserError, match=r"source\.json is not what dataset_fetch\.py writes"):
        prepare(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["source.json"]
