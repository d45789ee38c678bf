"""The dataset class, its file format (.npz), and its manifest (a summary in JSON)."""

import hashlib
import json
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from scaling.core import files
from scaling.core.errors import UserError
from scaling.core.records.kind import DATASET
from scaling.core.training_options import Dataset

SAVED = ("train_images", "train_labels", "test_images", "test_labels", "classes")
"""Fields of `ImageDataset` in an .npz file. The manifest contains `mean` and `std`."""


class Request(Dataset):
    """Options of section `dataset` in the configuration, and the folder for downloads."""

    raw_folder: Path = Path("resources/dataset/raw")
    """Folder for downloaded files."""


@dataclass(frozen=True, eq=False)
class ImageDataset:
    """Labelled square images of S × S pixels in two splits, training and test.

    Images are uint8 [N, S, S, 3] (RGB, 0 to 255). Labels are int64 [N] and index `classes`, a list
    of distinct names. `mean` and `std`, float64 [3], normalize images after scaling to [0, 1].
    UserError if names repeat, a label is out of range, or a split has no image of a class.
    """

    train_images: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    classes: list[str]
    mean: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    std: NDArray[np.float64] = field(default_factory=lambda: np.ones(3))

    def __post_init__(self) -> None:
        if len(set(self.classes)) != len(self.classes):
            raise UserError(f"class names must be distinct, not {', '.join(self.classes)}")
        known = np.arange(len(self.classes))
        for split, labels in (("train", self.train_labels), ("test", self.test_labels)):
            if (unknown := np.setdiff1d(labels, known)).size:
                raise UserError(f"{split} label {unknown[0]} is outside the {len(known)} classes")
            if (missing := np.setdiff1d(known, labels)).size:
                raise UserError(
                    f"class {self.classes[missing[0]]!r} has no {split} image: give every class at "
                    "least one image in both splits, or leave the class out"
                )

    def with_held_out(self, images: int) -> "ImageDataset":
        """Return a dataset whose test set is a validation set of `images` training images.

        The validation set is a sample stratified by class, and is removed from the training set.
        The original test set is dropped.
        """
        count = len(self.train_labels)
        kept = np.ones(count, dtype=bool)
        by_class = np.argsort(self.train_labels, kind="stable")
        kept[by_class[np.arange(images) * count // images]] = False
        train, test = ((self.train_images[use], self.train_labels[use]) for use in (kept, ~kept))
        return ImageDataset(*train, *test, self.classes, self.mean, self.std)


def resize(images: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Return `images` [N, S, S, 3], resized bilinearly to side × side pixels."""
    result = np.empty((len(images), side, side, 3), dtype=np.uint8)
    for place, image in zip(result, images, strict=True):
        fitting = Image.fromarray(image).resize((side, side), Image.Resampling.BILINEAR)
        place[:] = np.asarray(fitting)
    return result


def save(dataset: ImageDataset, path: Path) -> None:
    """Write `dataset` to `path` atomically, as an uncompressed .npz file."""
    with files.atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, **{name: vars(dataset)[name] for name in SAVED})


def load(path: Path) -> ImageDataset:
    """Return the dataset in the .npz file `path`; UserError if the file is missing or damaged."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            read = {name: arrays[name] for name in SAVED}
        return ImageDataset(**{**read, "classes": read["classes"].tolist()})
    except (zipfile.BadZipFile, OSError, EOFError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path} is missing, truncated or damaged; delete it, and dataset_prepare.py makes it"
        ) from error


def read(images: Path, manifest: Path, train_images: int | None = None) -> ImageDataset:
    """Return the dataset in the files `images` (.npz) and `manifest` (.json).

    If `train_images` is given, keep only this number of training images, from the start. UserError
    if a file is missing or damaged.
    """
    described, data = DATASET.read(manifest), load(images)
    return replace(
        data,
        train_images=data.train_images[:train_images],
        train_labels=data.train_labels[:train_images],
        mean=np.array(described["mean"]),
        std=np.array(described["std"]),
    )


def manifest(dataset: ImageDataset, source: str, origin: str) -> dict[str, Any]:
    """Return the manifest of `dataset`: a summary that a study reads instead of the images.

    `mean` and `std` (of the population) are per channel, over all training images scaled to [0, 1].
    `train_counts` and `test_counts` are numbers of images in the order of `classes`. `checksum` is
    the SHA-256 of class names, sizes and arrays. `origin` is a text about the images' origin.
    """
    sizes = [len(dataset.train_images), len(dataset.test_images)]
    checksum = hashlib.sha256(json.dumps([dataset.classes, sizes]).encode())
    train, test = dataset.train_labels.astype("<i8"), dataset.test_labels.astype("<i8")
    for array in (dataset.train_images, train, dataset.test_images, test):
        checksum.update(np.ascontiguousarray(array).data)
    # Counts of the 256 values give exact sums, without a float64 copy of the images.
    channels = np.moveaxis(dataset.train_images, -1, 0)
    counts = np.stack([np.bincount(channel.ravel(), minlength=256) for channel in channels])
    values, pixels = np.arange(256) / 255, counts.sum(axis=1)
    mean = counts @ values / pixels
    variance = (counts * (values - mean[:, None]) ** 2).sum(axis=1) / pixels
    return {
        "source": source,
        "origin": origin,
        "checksum": checksum.hexdigest(),
        "train_images": sizes[0],
        "test_images": sizes[1],
        "classes": dataset.classes,
        "image_shape": list(dataset.train_images.shape[1:]),
        "train_counts": np.bincount(dataset.train_labels).tolist(),
        "test_counts": np.bincount(dataset.test_labels).tolist(),
        "mean": mean.tolist(),
        "std": np.sqrt(variance).tolist(),
    }
