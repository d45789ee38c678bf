"""CIFAR-10 from a server, with a small archive in the place of the real one."""

import errno
import json
import socket
from pathlib import Path

import pytest
import torchvision
from pytest_httpserver import HTTPServer
from torchvision.datasets import CIFAR10
from werkzeug import Request, Response

import dataset_fetch
import dataset_prepare
from examples.small_cifar10 import ARCHIVE, assert_is_the_small_cifar10, make_archive
from scaling.core.errors import UserError
from scaling.data import cifar10, dataset


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return make_archive(tmp_path, monkeypatch)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "raw"


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
