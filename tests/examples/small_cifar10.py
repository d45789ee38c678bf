"""A small archive with the layout of CIFAR-10's, in the place of the real one."""

import hashlib
import pickle
import tarfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from torchvision.datasets import CIFAR10

from scaling.data import cifar10
from scaling.data.dataset import ImageDataset, Request

ARCHIVE = "cifar-10-python.tar.gz"
BATCHES = "cifar-10-batches-py"
# In the order of CIFAR-10, which is not the alphabet's.
CLASSES = ["ship", "cat"]


def make_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive like CIFAR-10's, of 2 train batches and 1 test batch, with its checksums set."""
    folder = tmp_path / "published" / BATCHES
    folder.mkdir(parents=True)
    # Each image has one value per channel: batch number, 100, label.
    for number, name in enumerate(["data_batch_1", "data_batch_2", "test_batch"]):
        planes = np.repeat([[number, 100, 0], [number, 100, 1]], 1024, axis=1).astype(np.uint8)
        (folder / name).write_bytes(pickle.dumps({"data": planes, "labels": [0, 1]}))
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": CLASSES}))
    md5 = {file.name: hashlib.md5(file.read_bytes()).hexdigest() for file in folder.iterdir()}
    path = folder.parent / ARCHIVE
    with tarfile.open(path, "w:gz") as tar:
        tar.add(folder, arcname=BATCHES)
    train = [[name, md5[name]] for name in ("data_batch_1", "data_batch_2")]
    monkeypatch.setattr(CIFAR10, "train_list", train)
    monkeypatch.setattr(CIFAR10, "test_list", [["test_batch", md5["test_batch"]]])
    monkeypatch.setattr(CIFAR10, "meta", {**CIFAR10.meta, "md5": md5["batches.meta"]})
    monkeypatch.setattr(CIFAR10, "tgz_md5", hashlib.md5(path.read_bytes()).hexdigest())
    monkeypatch.setattr(CIFAR10, "url", "http://localhost:1/never")
    monkeypatch.setattr("pooch.core.time", SimpleNamespace(sleep=lambda seconds: None))
    monkeypatch.setenv("no_proxy", "*")
    return path


def read(path: Path | None, raw: Path, url: str | None = None, attempts: int = 1) -> ImageDataset:
    return cifar10.read(Request("cifar10", raw, path, url, attempts))[0]


def assert_is_the_small_cifar10(data: ImageDataset) -> None:
    assert data.classes == CLASSES
    first, second = [[0, 100, 0], [0, 100, 1]], [[1, 100, 0], [1, 100, 1]]
    assert data.train_images[:, 5, 6].tolist() == first + second
    assert data.train_labels.tolist() == [0, 1, 0, 1]
    assert data.test_images[:, 31, 0].tolist() == [[2, 100, 0], [2, 100, 1]]
    assert data.test_labels.tolist() == [0, 1]
