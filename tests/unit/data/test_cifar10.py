"""CIFAR-10, with a small archive in the place of the real one: from a server, or here already."""

import errno
import json
import socket
import tarfile
from pathlib import Path

import pooch
import pytest
from torchvision.datasets import CIFAR10
from werkzeug import Response

import dataset_fetch
import dataset_prepare
from examples import small_cifar10
from examples.small_cifar10 import ARCHIVE, BATCHES, assert_is_the_small_cifar10, fetch, read
from scaling.core.errors import UserError
from scaling.data import cifar10, dataset


@pytest.fixture
def archive(tmp_path, monkeypatch):
    return small_cifar10.make_archive(tmp_path, monkeypatch)


@pytest.fixture
def unpacked(archive):
    return archive.parent / BATCHES


@pytest.fixture
def raw(tmp_path):
    return tmp_path / "raw"


@pytest.fixture
def url(httpserver):
    return httpserver.url_for("/a")


def names_in(folder):
    return [file.name for file in folder.iterdir()]


@pytest.mark.parametrize("from_mirror", [False, True])
def test_the_archive_is_downloaded_and_prepared(
    archive, tmp_path, httpserver, monkeypatch, url, from_mirror
):
    httpserver.expect_request("/a").respond_with_data(archive.read_bytes())
    if not from_mirror:
        monkeypatch.setattr(CIFAR10, "url", url)
    dataset_fetch.main(
        ["--source=cifar10", f"--raw-folder={tmp_path}/raw", f"--output={tmp_path}/source.json",
         *([f"--mirror-url={url}"] if from_mirror else [])]
    )  # fmt: skip
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


def test_a_downloaded_archive_is_not_downloaded_again(archive, raw, httpserver, url):
    httpserver.expect_request("/a").respond_with_data(archive.read_bytes())
    assert fetch(None, raw, url) == fetch(None, raw, url)
    assert len(httpserver.log) == 1


def test_a_half_archive_of_before_is_replaced(archive, raw, httpserver, url):
    raw.mkdir()
    (raw / ARCHIVE).write_bytes(archive.read_bytes()[:100])
    httpserver.expect_request("/a").respond_with_data(archive.read_bytes())
    assert fetch(None, raw, url).read_bytes() == archive.read_bytes()


def broken(content):
    return Response("broken", status=500)


def cut_short(content):
    return Response(content[: len(content) // 2], headers={"Content-Length": len(content)})


def another_file(content):
    return Response("hello")


@pytest.mark.parametrize("failure", [broken, cut_short, another_file])
def test_a_failed_download_is_tried_again_as_often_as_asked_for(
    archive, raw, httpserver, url, failure
):
    content = archive.read_bytes()
    for _ in range(2):
        httpserver.expect_ordered_request("/a").respond_with_handler(lambda _: failure(content))
    httpserver.expect_ordered_request("/a").respond_with_data(content)
    with pytest.raises(UserError, match=r"cannot download CIFAR-10 from http://.*/a in 2 attempts"):
        fetch(None, raw, url, 2)
    assert names_in(raw) == []
    assert_is_the_small_cifar10(read(fetch(None, raw, url, 2)))
    assert len(httpserver.log) == 3


@pytest.mark.parametrize(
    ("failure", "complaint"),
    [
        (broken, r"in 1 attempt: 500 Server Error.*; give another --mirror-url, or .* with --path"),
        (another_file, r"expected md5:\w+ but got 5d41402abc4b2a76b9719d911017c592"),
    ],
)
def test_what_the_server_did_is_told(archive, raw, httpserver, url, failure, complaint):
    httpserver.expect_request("/a").respond_with_handler(lambda _: failure(b""))
    with pytest.raises(UserError, match=complaint):
        fetch(None, raw, url)


@pytest.mark.parametrize(("listens", "complaint"), [(True, "timed out"), (False, "refused")])
def test_a_silent_or_absent_server_is_given_up(archive, raw, monkeypatch, listens, complaint):
    monkeypatch.setattr(cifar10, "SILENCE_SECONDS", 0.1)
    server = socket.create_server(("localhost", 0))
    address = f"http://localhost:{server.getsockname()[1]}/a"
    if not listens:
        server.close()
    with pytest.raises(UserError, match=f"from {address} in 1 attempt: .*{complaint}"):
        fetch(None, raw, address)
    server.close()
    assert names_in(raw) == []


def test_a_mirror_that_is_no_url_is_said_so(archive, raw):
    with pytest.raises(UserError, match="'example' is not a URL"):
        fetch(None, raw, "example", 3)
    assert not raw.exists()


def test_a_disk_that_fills_up_during_a_download_stops_it_and_leaves_nothing(
    archive, raw, monkeypatch, url
):
    calls = []

    def write_until_full(self, url, target, pooch):
        calls.append(url)
        Path(target).write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", write_until_full)
    with pytest.raises(UserError, match=rf"cannot write .*{ARCHIVE}: No space left on device"):
        fetch(None, raw, url, 3)
    assert len(calls) == 1
    assert names_in(raw) == []


def test_a_disk_that_fills_up_during_unpacking_is_said_so(archive, tmp_path, monkeypatch):
    def unpack_until_full(self, path, *_, **__):
        Path(path, "half").touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(tarfile.TarFile, "extractall", unpack_until_full)
    with pytest.raises(UserError, match=r"cannot unpack .*: No space left on device; set TMPDIR"):
        read(archive)
    assert names_in(tmp_path / "temporary") == []


def test_an_archive_given_is_used_where_it_lies(archive, raw):
    before = sorted(archive.parent.rglob("*"))
    assert fetch(archive, raw) == archive
    assert_is_the_small_cifar10(read(archive))
    assert sorted(archive.parent.rglob("*")) == before
    assert not raw.exists()


def test_a_folder_that_holds_the_archive_is_enough(archive, tmp_path, raw):
    (tmp_path / "kept").mkdir()
    kept = archive.rename(tmp_path / "kept" / ARCHIVE)
    assert fetch(kept.parent, raw) == kept
    assert_is_the_small_cifar10(read(kept))


def test_the_unpacked_folder_or_the_one_around_it_is_enough(unpacked, raw):
    for given in (unpacked, unpacked.parent):
        path, origin = cifar10.fetch(given, dataset.Download(raw))
        assert path == unpacked
        assert origin.endswith(f"{BATCHES}, md5 of each file checked")
    renamed = unpacked.rename(unpacked.parent.parent / "mine")
    assert_is_the_small_cifar10(read(fetch(renamed, raw)))


def test_a_path_without_cifar10_is_named(archive, tmp_path, raw):
    with pytest.raises(UserError, match="absent does not exist; give cifar-10-python"):
        fetch(tmp_path / "absent", raw)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=f"empty holds neither {BATCHES} nor {ARCHIVE}"):
        fetch(tmp_path / "empty", raw)


def test_a_truncated_archive_is_refused_when_fetched_and_when_prepared(archive, raw):
    archive.write_bytes(archive.read_bytes()[:-1])
    complaint = f"{ARCHIVE} is not {ARCHIVE}, or is truncated or damaged .md5 .* {CIFAR10.tgz_md5}"
    with pytest.raises(UserError, match=complaint):
        fetch(archive, raw)
    with pytest.raises(UserError, match=complaint):
        read(archive)


@pytest.mark.parametrize("name", ["data_batch_1", "data_batch_2", "test_batch", "batches.meta"])
def test_a_missing_or_changed_batch_is_named(unpacked, raw, name):
    file = unpacked / name
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(UserError, match=f"{name} is missing, truncated or damaged"):
        fetch(unpacked, raw)
    file.unlink()
    with pytest.raises(UserError, match=f"{name} is missing, truncated or damaged"):
        fetch(unpacked.parent, raw)
