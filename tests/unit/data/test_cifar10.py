"""CIFAR-10 from a server or a local path. A small archive replaces the real one."""

import hashlib
import pickle
import shutil
import socket
import tarfile
from types import SimpleNamespace

import numpy as np
import pytest
from torchvision.datasets import CIFAR10

import dataset_prepare
from scaling.core.errors import UserError
from scaling.core.records.kind import DATASET
from scaling.data import cifar10, dataset
from scaling.data.dataset import Request

ARCHIVE = "cifar-10-python.tar.gz"
BATCHES = "cifar-10-batches-py"
# In the order of CIFAR-10, which is not the alphabet's.
CLASSES = ["ship", "cat"]


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """Return a small archive in CIFAR-10's format, with two training batches and one test batch."""
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


def read(path, folder, url=None, attempts=1):
    told = {"path": path and str(path), "mirror_url": url, "download_attempts": attempts}
    return cifar10.read(Request(source="cifar10", raw_folder=folder / "raw", **told))[0]


def assert_is_the_small_cifar10(data):
    assert data.classes == CLASSES
    first, second = [[0, 100, 0], [0, 100, 1]], [[1, 100, 0], [1, 100, 1]]
    assert data.train_images[:, 5, 6].tolist() == first + second
    assert data.train_labels.tolist() == [0, 1, 0, 1]
    assert data.test_images[:, 31, 0].tolist() == [[2, 100, 0], [2, 100, 1]]
    assert data.test_labels.tolist() == [0, 1]


def test_archive_is_downloaded_once_and_prepared(archive, tmp_path, httpserver, monkeypatch):
    monkeypatch.setattr(CIFAR10, "url", httpserver.url_for("/a"))
    httpserver.expect_request("/a").respond_with_data(archive.read_bytes())
    places = {"output": tmp_path / "images.npz", "manifest": tmp_path / "manifest.json"}
    for _ in range(2):
        request = {"source": "cifar10", "raw_folder": tmp_path / "raw"}
        dataset_prepare.main(request=request, **places)
    assert len(httpserver.log) == 1
    assert_is_the_small_cifar10(dataset.load(tmp_path / "images.npz"))
    origin = DATASET.read(tmp_path / "manifest.json")["origin"]
    assert origin == f"CIFAR-10 (Krizhevsky 2009), {ARCHIVE}, md5 {CIFAR10.tgz_md5}"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (500, r"in 2 attempts: 500 Server Error.*; give another --mirror-url, or .* with --path"),
        (200, r"expected md5:\w+ but got 5d41402abc4b2a76b9719d911017c592"),
    ],
)
def test_failed_download_is_repeated_up_to_the_limit(archive, tmp_path, httpserver, status, said):
    for _ in range(2):
        httpserver.expect_ordered_request("/a").respond_with_data("hello", status)
    httpserver.expect_ordered_request("/a").respond_with_data(archive.read_bytes())
    with pytest.raises(UserError, match=said):
        read(None, tmp_path, httpserver.url_for("/a"), 2)
    assert list((tmp_path / "raw").iterdir()) == []
    assert_is_the_small_cifar10(read(None, tmp_path, httpserver.url_for("/a"), 2))


def test_silent_server_is_given_up(archive, tmp_path, monkeypatch):
    monkeypatch.setattr(cifar10, "SILENCE_SECONDS", 0.1)
    with socket.create_server(("localhost", 0)) as server:
        address = f"http://localhost:{server.getsockname()[1]}/a"
        with pytest.raises(UserError, match=f"{address} to .*/raw in 1 attempt: .*timed out"):
            read(None, tmp_path, address)


def test_archive_or_folder_is_read_in_place(archive, tmp_path):
    unpacked = archive.parent / BATCHES
    for given in (archive, unpacked, unpacked.parent):
        assert_is_the_small_cifar10(read(given, tmp_path))
    shutil.rmtree(unpacked)
    assert_is_the_small_cifar10(read(archive.parent, tmp_path))
    assert [*archive.parent.iterdir()] == [archive] and not (tmp_path / "raw").exists()


def test_missing_or_changed_file_is_refused(archive, tmp_path):
    with pytest.raises(UserError, match=f"there is neither {BATCHES} nor {ARCHIVE} at .*absent;"):
        read(tmp_path / "absent", tmp_path)
    file = archive.parent / BATCHES / "data_batch_2"
    for damage in (lambda: file.write_bytes(file.read_bytes()[:-1]), file.unlink):
        damage()
        with pytest.raises(UserError, match=rf"{BATCHES} is missing, truncated or damaged"):
            read(file.parent, tmp_path)
    archive.write_bytes(archive.read_bytes()[:-1])
    with pytest.raises(UserError, match=rf"{ARCHIVE} is truncated or damaged, by its md5; fetch"):
        read(archive, tmp_path)
