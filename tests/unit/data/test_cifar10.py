"""CIFAR-10 in an archive or a folder that the user has already."""

import errno
import tarfile
from pathlib import Path

import pytest
from torchvision.datasets import CIFAR10

from examples.small_cifar10 import ARCHIVE, BATCHES, assert_is_the_small_cifar10, make_archive
from scaling.core.errors import UserError
from scaling.data import cifar10


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return make_archive(tmp_path, monkeypatch)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "raw"


def names_in(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir()]


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
