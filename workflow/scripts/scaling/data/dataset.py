"""The one form every image source is brought into, its file, and the manifest that describes it."""

import hashlib
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scaling.core import files
from scaling.core.errors import UserError

IMAGE_SHAPE = (32, 32, 3)


@dataclass(frozen=True)
class Download:
    """How to bring a file to this machine: the folder it belongs in, from where, tried how often.

    Without a `mirror_url` it comes from where the source has it.
    """

    folder: Path
    mirror_url: str | None = None
    attempts: int = 1


@dataclass(frozen=True)
class MadeUp:
    """How many images to generate, and from which random seed."""

    train_images: int
    test_images: int
    seed: int


@dataclass(frozen=True, eq=False)
class ImageDataset:
    """Labelled images of 32×32 pixels in two splits.

    `train_images`, `test_images`: uint8 [N, 32, 32, 3], red-green-blue, 0 to 255;
    `train_labels`, `test_labels`: int64 [N], positions in `classes`; `classes`: distinct names.
    Raises UserError when an array does not fit this or a class has no image in one split.
    """

    train_images: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    classes: list[str]

    def __post_init__(self) -> None:
        if len(set(self.classes)) != len(self.classes):
            raise UserError(f"class names must be distinct, not {', '.join(self.classes)}")
        _check_split("train", self.train_images, self.train_labels, self.classes)
        _check_split("test", self.test_images, self.test_labels, self.classes)


def _check_split(
    split: str, images: NDArray[np.uint8], labels: NDArray[np.int64], classes: list[str]
) -> None:
    if images.dtype != np.uint8 or images.shape[1:] != IMAGE_SHAPE:
        raise UserError(
            f"{split} images must be uint8 of shape [N, 32, 32, 3], "
            f"not {images.dtype} of shape {list(images.shape)}"
        )
    if labels.dtype != np.int64 or labels.shape != images.shape[:1]:
        raise UserError(
            f"{split} labels must be int64, one for each of {len(images)} images, "
            f"not {labels.dtype} of shape {list(labels.shape)}"
        )
    unknown = np.setdiff1d(labels, np.arange(len(classes)))
    if unknown.size:
        raise UserError(
            f"{split} label {unknown[0]} is outside the {len(classes)} classes "
            f"(labels run from 0 to {len(classes) - 1})"
        )
    missing = np.setdiff1d(np.arange(len(classes)), labels)
    if missing.size:
        raise UserError(
            f"class {classes[missing[0]]!r} has no {split} image: "
            f"give every class at least one image in both splits, or leave the class out"
        )


def save(dataset: ImageDataset, path: Path) -> None:
    """Write `dataset` to `path` atomically, as an uncompressed .npz."""
    with files.atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.savez(
            stream,
            train_images=dataset.train_images,
            train_labels=dataset.train_labels,
            test_images=dataset.test_images,
            test_labels=dataset.test_labels,
            classes=np.array(dataset.classes),
        )


def load(path: Path) -> ImageDataset:
    """The dataset that `save` wrote to `path`; a missing or damaged file is a UserError."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return ImageDataset(
                train_images=arrays["train_images"],
                train_labels=arrays["train_labels"],
                test_images=arrays["test_images"],
                test_labels=arrays["test_labels"],
                classes=arrays["classes"].tolist(),
            )
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; make it with dataset_prepare.py") from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except (zipfile.BadZipFile, EOFError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path} is truncated or damaged; delete it so that it is made again"
        ) from error


def manifest(dataset: ImageDataset, source: str, origin: str) -> dict[str, Any]:
    """What the rest of the study needs to know of `dataset` without reading its images.

    `mean` and `std` are of the train images' three channels, scaled to [0, 1]; counts are in the
    order of the classes. `origin` says in words where the images of `source` came from.
    """
    mean, std = _channel_statistics(dataset.train_images)
    return {
        "source": source,
        "origin": origin,
        "checksum": _checksum(dataset),
        "train_images": len(dataset.train_images),
        "test_images": len(dataset.test_images),
        "classes": dataset.classes,
        "image_shape": list(IMAGE_SHAPE),
        "train_counts": np.bincount(dataset.train_labels).tolist(),
        "test_counts": np.bincount(dataset.test_labels).tolist(),
        "mean": mean,
        "std": std,
    }


def _checksum(dataset: ImageDataset) -> str:
    """sha256 in hexadecimal over the class names, the sizes and the bytes of the four arrays."""
    sizes = [len(dataset.train_images), len(dataset.test_images)]
    digest = hashlib.sha256(json.dumps([dataset.classes, sizes]).encode())
    for array in (
        dataset.train_images,
        dataset.train_labels.astype("<i8"),
        dataset.test_images,
        dataset.test_labels.astype("<i8"),
    ):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _channel_statistics(images: NDArray[np.uint8]) -> tuple[list[float], list[float]]:
    """Mean and standard deviation (of the population) of each channel, in [0, 1]."""
    # Counting the 256 values is exact, and needs no copy of the images in float64.
    values = np.arange(256) / 255
    counts = np.zeros((3, 256), dtype=np.int64)
    for start in range(0, len(images), 1000):
        for channel in range(3):
            pixels = images[start : start + 1000, ..., channel].ravel()
            counts[channel] += np.bincount(pixels, minlength=256)
    means = counts @ values / counts.sum(axis=1)
    variances = (counts * (values - means[:, None]) ** 2).sum(axis=1) / counts.sum(axis=1)
    return means.tolist(), np.sqrt(variances).tolist()
