"""CIFAR-10 as published: downloaded or found, checked by md5, read by torchvision."""

import tempfile
from pathlib import Path
from urllib.parse import urlparse

import numpy as np
import pooch
from requests import RequestException
from torchvision.datasets import CIFAR10
from torchvision.datasets.utils import calculate_md5, check_integrity, extract_archive

from scaling.core.errors import UserError
from scaling.data.dataset import Download, ImageDataset, MadeUp

SILENCE_SECONDS = 60.0
"""A server that sends nothing for so long is given up."""


class _Batches(CIFAR10):
    """torchvision's reader, with the folder that holds the batch files themselves as its root."""

    base_folder = ""


def fetch(path: Path | None, download: Download) -> tuple[Path, str]:
    """Make sure that CIFAR-10 is here, whole: where it lies and its origin in words.

    `path` is an archive (cifar-10-python.tar.gz), or a folder that is or holds the archive or
    cifar-10-batches-py; nothing is copied from it. Without `path` the archive is downloaded, unless
    it lies in the folder of downloads already.
    Raises UserError when nothing usable is there, or after the last attempt to download it.
    """
    place = _locate(path) if path else _downloaded(download)
    if place.is_dir():
        return place, f"CIFAR-10 (Krizhevsky 2009), {CIFAR10.base_folder}, md5 of each file checked"
    return place, f"CIFAR-10 (Krizhevsky 2009), {CIFAR10.filename}, md5 {CIFAR10.tgz_md5}"


def read(path: Path, made_up: MadeUp) -> tuple[ImageDataset, str]:
    """Read the archive or folder that `fetch` accepts as its `path`, checked again."""
    place = _locate(path)
    return (_read_batches if place.is_dir() else _read_archive)(place), ""


def _read_archive(place: Path) -> ImageDataset:
    with tempfile.TemporaryDirectory(prefix="cifar10-") as folder:
        try:
            extract_archive(str(place), folder)
        except OSError as error:
            raise UserError(
                f"cannot unpack {place} into {folder}: {error.strerror or error}; "
                "set TMPDIR to a folder with 200 MB of room"
            ) from error
        return _read_batches(_locate(Path(folder)))


def _locate(path: Path) -> Path:
    """The archive or the folder of batch files at `path`, after its md5 checks."""
    if not path.exists():
        raise UserError(
            f"{path} does not exist; give {CIFAR10.filename} or the folder that holds it"
        )
    if path.is_file():
        md5 = calculate_md5(path)
        if md5 != CIFAR10.tgz_md5:
            raise UserError(
                f"{path} is not {CIFAR10.filename}, or is truncated or damaged (md5 {md5} instead "
                f"of {CIFAR10.tgz_md5}); fetch it again from {CIFAR10.url}"
            )
        return path
    batches = [*CIFAR10.train_list, *CIFAR10.test_list]
    for folder in (path / CIFAR10.base_folder, path):
        if any((folder / name).exists() for name, _ in batches):
            for name, md5 in [*batches, (CIFAR10.meta["filename"], CIFAR10.meta["md5"])]:
                if not check_integrity(folder / name, md5):
                    raise UserError(
                        f"{folder / name} is missing, truncated or damaged (its md5 must be "
                        f"{md5}); unpack {CIFAR10.filename} again"
                    )
            return folder
    if (path / CIFAR10.filename).is_file():
        return _locate(path / CIFAR10.filename)
    raise UserError(
        f"{path} holds neither {CIFAR10.base_folder} nor {CIFAR10.filename}; "
        "give a folder that does, or leave the path out to download"
    )


def _read_batches(folder: Path) -> ImageDataset:
    train, test = _Batches(folder, train=True), _Batches(folder, train=False)
    return ImageDataset(
        train_images=np.ascontiguousarray(train.data),
        train_labels=np.array(train.targets, dtype=np.int64),
        test_images=np.ascontiguousarray(test.data),
        test_labels=np.array(test.targets, dtype=np.int64),
        classes=list(train.classes),
    )


def _downloaded(download: Download) -> Path:
    url = download.mirror_url or CIFAR10.url
    if urlparse(url).scheme not in ("http", "https"):
        raise UserError(f"{url!r} is not a URL: it must begin with https:// or http://")
    archive = pooch.create(
        path=download.folder,
        base_url="",
        registry={CIFAR10.filename: f"md5:{CIFAR10.tgz_md5}"},
        urls={CIFAR10.filename: url},
        retry_if_failed=download.attempts - 1,
    )
    try:
        downloader = pooch.HTTPDownloader(timeout=SILENCE_SECONDS)
        place = Path(archive.fetch(CIFAR10.filename, downloader=downloader))
        place.chmod(0o644)
    except (RequestException, ValueError) as error:
        reason, _, _ = str(error).partition(". ")
        attempts = f"{download.attempts} attempt{'s' if download.attempts > 1 else ''}"
        raise UserError(
            f"cannot download CIFAR-10 from {url} in {attempts}: {reason}; give another "
            f"--mirror-url, or the archive {CIFAR10.filename} with --path"
        ) from error
    except OSError as error:
        raise UserError(
            f"cannot write {download.folder / CIFAR10.filename}: {error.strerror or error}"
        ) from error
    return place
