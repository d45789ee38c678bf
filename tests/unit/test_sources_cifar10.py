"""CIFAR-10 from a server, an archive or a folder, with a small archive in the place of the real."""

import errno
import hashlib
import json
import pickle
import socket
import tarfile
from pathlib import Path

import numpy as np
import pytest
import tenacity
import torchvision
from pytest_httpserver import HTTPServer
from torchvision.datasets import CIFAR10
from werkzeug import Request, Response

import dataset_fetch
import dataset_prepare
from scaling import dataset
from scaling.errors import UserError
from scaling.sources import cifar10

ARCHIVE = "cifar-10-python.tar.gz"
BATCHES = "cifar-10-batches-py"
# In the order of CIFAR-10, which is not the alphabet's.
CLASSES = ["ship", "cat"]


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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
    monkeypatch.setattr(cifar10, "ATTEMPT_WAIT", tenacity.wait_none())
    monkeypatch.setenv("no_proxy", "*")
    return path


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "raw"


def assert_is_the_small_cifar10(data: dataset.ImageDataset) -> None:
    assert data.classes == CLASSES
    first, second = [[0, 100, 0], [0, 100, 1]], [[1, 100, 0], [1, 100, 1]]
    assert data.train_images[:, 5, 6].tolist() == first + second
    assert data.train_labels.tolist() == [0, 1, 0, 1]
    assert data.test_images[:, 31, 0].tolist() == [[2, 100, 0], [2, 100, 1]]
    assert data.test_labels.tolist() == [0, 1]


def names_in(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir()]


def test_the_archive_is_downloaded_and_prepared(
    archive: Path, tmp_path: Path, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    httpserver.expect_request("/cifar.tgz").respond_with_data(archive.read_bytes())
    monkeypatch.setattr(CIFAR10, "url", httpserver.url_for("/cifar.tgz"))
    dataset_fetch.main(
        ["--source=cifar10", f"--raw-folder={tmp_path}/raw", f"--output={tmp_path}/source.json"]
    )
    assert json.loads((tmp_path / "source.json").read_text()) == {
        "source": "cifar10",
        "path": f"{tmp_path}/raw/{ARCHIVE}",
        "origin": f"CIFAR-10 (Krizhevsky 2009), {ARCHIVE}, md5 {CIFAR10.tgz_md5}",
    }
    assert names_in(tmp_path / "raw") == [ARCHIVE]
    dataset_prepare.main(
        [f"--fetched={tmp_path}/source.json", f"--output={tmp_path}/images.npz",
         f"--manifest={tmp_path}/manifest.json"]
    )  # fmt: skip
    assert_is_the_small_cifar10(dataset.load(tmp_path / "images.npz"))
    assert json.loads((tmp_path / "manifest.json").read_text())["source"] == "cifar10"


def test_a_mirror_serves_instead_of_the_original(
    archive: Path, tmp_path: Path, httpserver: HTTPServer
) -> None:
    httpserver.expect_request("/mirror").respond_with_data(archive.read_bytes())
    dataset_fetch.main(
        ["--source=cifar10", f"--mirror-url={httpserver.url_for('/mirror')}",
         f"--raw-folder={tmp_path}/raw", f"--output={tmp_path}/source.json"]
    )  # fmt: skip
    assert (tmp_path / "raw" / ARCHIVE).read_bytes() == archive.read_bytes()


def test_a_downloaded_archive_is_not_downloaded_again(
    archive: Path, raw: Path, httpserver: HTTPServer
) -> None:
    httpserver.expect_request("/a").respond_with_data(archive.read_bytes())
    first = cifar10.fetch(None, raw, httpserver.url_for("/a"), 1)
    requests = len(httpserver.log)
    assert cifar10.fetch(None, raw, httpserver.url_for("/a"), 1) == first
    assert len(httpserver.log) == requests > 0


def test_a_half_archive_of_before_is_replaced(
    archive: Path, raw: Path, httpserver: HTTPServer
) -> None:
    raw.mkdir()
    (raw / ARCHIVE).write_bytes(archive.read_bytes()[:100])
    httpserver.expect_request("/a").respond_with_data(archive.read_bytes())
    cifar10.fetch(None, raw, httpserver.url_for("/a"), 1)
    assert (raw / ARCHIVE).read_bytes() == archive.read_bytes()


def test_a_server_that_recovers_is_asked_again(
    archive: Path, raw: Path, httpserver: HTTPServer
) -> None:
    httpserver.expect_oneshot_request("/a").respond_with_data("busy", status=503)
    httpserver.expect_request("/a").respond_with_data(archive.read_bytes())
    path, _ = cifar10.fetch(None, raw, httpserver.url_for("/a"), 2)
    assert_is_the_small_cifar10(cifar10.read(path))


def test_a_server_that_stays_broken_is_given_up_after_the_attempts_asked_for(
    archive: Path, raw: Path, httpserver: HTTPServer
) -> None:
    httpserver.expect_request("/a").respond_with_data("broken", status=500)
    with pytest.raises(UserError, match=r"from http://.*/a in 3 attempts: HTTP Error 500.*--path"):
        cifar10.fetch(None, raw, httpserver.url_for("/a"), 3)
    assert len(httpserver.log) == 3
    assert names_in(raw) == []


def test_another_file_than_cifar10_is_refused(
    archive: Path, raw: Path, httpserver: HTTPServer
) -> None:
    httpserver.expect_request("/a").respond_with_data(b"hello")
    expected = (
        "in 1 attempt: 5 bytes came, with md5 5d41402abc4b2a76b9719d911017c592 "
        f"instead of {CIFAR10.tgz_md5}"
    )
    with pytest.raises(UserError, match=expected):
        cifar10.fetch(None, raw, httpserver.url_for("/a"), 1)
    assert names_in(raw) == []


def test_a_download_cut_short_is_tried_again(
    archive: Path, raw: Path, httpserver: HTTPServer
) -> None:
    content = archive.read_bytes()

    def first_half(request: Request) -> Response:
        return Response(content[: len(content) // 2], headers={"Content-Length": len(content)})

    # torchvision asks twice for one download: once to follow redirections, once for the content.
    httpserver.expect_ordered_request("/a").respond_with_data(content)
    httpserver.expect_ordered_request("/a").respond_with_handler(first_half)
    for _ in range(2):
        httpserver.expect_ordered_request("/a").respond_with_data(content)
    cifar10.fetch(None, raw, httpserver.url_for("/a"), 2)
    assert (raw / ARCHIVE).read_bytes() == content


def test_a_download_always_cut_short_leaves_nothing(
    archive: Path, raw: Path, httpserver: HTTPServer
) -> None:
    content = archive.read_bytes()

    def first_half(request: Request) -> Response:
        return Response(content[: len(content) // 2], headers={"Content-Length": len(content)})

    httpserver.expect_request("/a").respond_with_handler(first_half)
    with pytest.raises(UserError, match=r"cannot download CIFAR-10 from .* in 2 attempts"):
        cifar10.fetch(None, raw, httpserver.url_for("/a"), 2)
    assert names_in(raw) == []


def test_a_silent_server_is_given_up(
    archive: Path, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cifar10, "SILENCE_SECONDS", 0.1)
    with socket.create_server(("localhost", 0)) as server:
        url = f"http://localhost:{server.getsockname()[1]}/a"
        with pytest.raises(UserError, match=f"from {url} in 1 attempt: .*timed out"):
            cifar10.fetch(None, raw, url, 1)
    assert socket.getdefaulttimeout() is None
    assert names_in(raw) == []


def test_no_server_at_all_is_said_in_one_sentence(archive: Path, raw: Path) -> None:
    with socket.create_server(("localhost", 0)) as server:
        url = f"http://localhost:{server.getsockname()[1]}/a"
    with pytest.raises(UserError, match=r"in 1 attempt: .*Connection refused"):
        cifar10.fetch(None, raw, url, 1)


def test_a_mirror_that_is_no_url_is_said_so(archive: Path, raw: Path) -> None:
    with pytest.raises(UserError, match="'example' is not a URL"):
        cifar10.fetch(None, raw, "example", 3)
    assert names_in(raw) == []


def test_a_disk_that_fills_up_during_a_download_stops_it_at_once_and_leaves_nothing(
    archive: Path, raw: Path, monkeypatch: pytest.MonkeyPatch, httpserver: HTTPServer
) -> None:
    calls = []

    def write_until_full(url: str, filename: str) -> None:
        calls.append(filename)
        Path(filename).write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    httpserver.expect_request("/a").respond_with_data(b"")
    monkeypatch.setattr(torchvision.datasets.utils, "_urlretrieve", write_until_full)
    with pytest.raises(UserError, match=rf"cannot write .*{ARCHIVE}: No space left on device"):
        cifar10.fetch(None, raw, httpserver.url_for("/a"), 3)
    assert len(calls) == 1
    assert names_in(raw) == []


def test_a_disk_that_fills_up_during_unpacking_is_said_so(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unpack_until_full(self: tarfile.TarFile, path: str, filter: str) -> None:
        Path(path, "half").touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(tarfile.TarFile, "extractall", unpack_until_full)
    with pytest.raises(UserError, match=r"cannot unpack .*: No space left on device; set TMPDIR"):
        cifar10.read(archive)
    assert names_in(tmp_path / "temporary") == []


@pytest.fixture
def unpacked(archive: Path) -> Path:
    return archive.parent / BATCHES


def test_an_archive_given_is_used_where_it_lies(archive: Path, raw: Path) -> None:
    before = sorted(archive.parent.rglob("*"))
    path, origin = cifar10.fetch(archive, raw, None, 1)
    assert path == archive
    assert CIFAR10.tgz_md5 in origin
    assert_is_the_small_cifar10(cifar10.read(path))
    assert sorted(archive.parent.rglob("*")) == before
    assert not raw.exists()


def test_a_folder_that_holds_the_archive_is_enough(
    archive: Path, tmp_path: Path, raw: Path
) -> None:
    (tmp_path / "kept").mkdir()
    kept = archive.rename(tmp_path / "kept" / ARCHIVE)
    path, _ = cifar10.fetch(kept.parent, raw, None, 1)
    assert path == kept
    assert_is_the_small_cifar10(cifar10.read(path))


def test_the_unpacked_folder_or_the_one_around_it_is_enough(unpacked: Path, raw: Path) -> None:
    renamed = unpacked.parent.parent / "mine"
    for given in (unpacked, unpacked.parent):
        path, origin = cifar10.fetch(given, raw, None, 1)
        assert path == unpacked
        assert origin.endswith(f"{BATCHES}, md5 of each file checked")
    path, _ = cifar10.fetch(unpacked.rename(renamed), raw, None, 1)
    assert_is_the_small_cifar10(cifar10.read(path))


def test_a_path_that_does_not_exist_is_named(archive: Path, tmp_path: Path, raw: Path) -> None:
    with pytest.raises(UserError, match="absent does not exist; give cifar-10-python"):
        cifar10.fetch(tmp_path / "absent", raw, None, 1)


def test_a_folder_without_cifar10_is_named(archive: Path, tmp_path: Path, raw: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=f"empty holds neither {BATCHES} nor {ARCHIVE}"):
        cifar10.fetch(tmp_path / "empty", raw, None, 1)


def test_a_truncated_archive_is_refused_when_fetched_and_when_prepared(
    archive: Path, raw: Path
) -> None:
    archive.write_bytes(archive.read_bytes()[:-1])
    complaint = f"{ARCHIVE} is not {ARCHIVE}, or is truncated or damaged .md5 .* {CIFAR10.tgz_md5}"
    with pytest.raises(UserError, match=complaint):
        cifar10.fetch(archive, raw, None, 1)
    with pytest.raises(UserError, match=complaint):
        cifar10.read(archive)


@pytest.mark.parametrize("name", ["data_batch_1", "data_batch_2", "test_batch", "batches.meta"])
def test_a_missing_or_changed_batch_is_named(unpacked: Path, raw: Path, name: str) -> None:
    file = unpacked / name
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(UserError, match=f"{name} is missing, truncated or damaged"):
        cifar10.fetch(unpacked, raw, None, 1)
    file.unlink()
    with pytest.raises(UserError, match=f"{name} is missing, truncated or damaged"):
        cifar10.fetch(unpacked.parent, raw, None, 1)
