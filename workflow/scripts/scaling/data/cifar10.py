"""Read CIFAR-10, downloaded or from a path, checked by md5."""

import tarfile
import tempfile
from pathlib import Path

import numpy as np
import pooch
from requests import RequestException
from torchvision.datasets import CIFAR10
from torchvision.datasets.utils import check_integrity

from scaling.core.errors import UserError
from scaling.data.dataset import ImageDataset, Request

SILENCE_SECONDS = 60.0
"""Timeout for a server that sends nothing."""
AGAIN = f"fetch {CIFAR10.filename} again from {CIFAR10.url}"


class _Batches(CIFAR10):
    """torchvision's reader, with the folder of the batch files as its root."""

    base_folder = ""


def read(request: Request) -> tuple[ImageDataset, str]:
    """Return CIFAR-10 and a description of its origin.

    The path is an archive (cifar-10-python.tar.gz), or a folder that is or contains the archive or
    cifar-10-batches-py. Without a path the archive is downloaded, unless the download folder has
    it. Raises UserError if the files are unusable, or after the last attempt.
    """
    path = Path(request.path).expanduser() if request.path else _downloaded(request)
    origin = "CIFAR-10 (Krizhevsky 2009), "
    for folder in (path, path / CIFAR10.base_folder):
        if any(folder.glob("data_batch_*")):
            return _read(folder), f"{origin}{CIFAR10.base_folder}, md5 of each file checked"
    for archive in (path, path / CIFAR10.filename):
        if archive.is_file():
            if not check_integrity(archive, CIFAR10.tgz_md5):
                raise UserError(f"{archive} is truncated or damaged, by its md5; {AGAIN}")
            with tempfile.TemporaryDirectory(prefix="cifar10-") as unpacked:
                with tarfile.open(archive) as files:
                    files.extractall(unpacked, filter="data")
                data = _read(Path(unpacked, CIFAR10.base_folder))
            return data, f"{origin}{CIFAR10.filename}, md5 {CIFAR10.tgz_md5}"
    raise UserError(
        f"there is neither {CIFAR10.base_folder} nor {CIFAR10.filename} at {path}; "
        "give a folder that has one, or leave the path out to download"
    )


def _read(folder: Path) -> ImageDataset:
    try:
        train, test = _Batches(folder, train=True), _Batches(folder, train=False)
    except RuntimeError as error:
        raise UserError(
            f"a file of CIFAR-10 in {folder} is missing, truncated or damaged, by its md5; {AGAIN}"
        ) from error
    return ImageDataset(
        train_images=np.ascontiguousarray(train.data),
        train_labels=np.array(train.targets, dtype=np.int64),
        test_images=np.ascontiguousarray(test.data),
        test_labels=np.array(test.targets, dtype=np.int64),
        classes=list(train.classes),
    )


def _downloaded(request: Request) -> Path:
    url, attempts = request.mirror_url or CIFAR10.url, request.download_attempts
    archive = pooch.create(
        path=request.raw_folder,
        base_url="",
        registry={CIFAR10.filename: f"md5:{CIFAR10.tgz_md5}"},
        urls={CIFAR10.filename: url},
        retry_if_failed=attempts - 1,
    )
    try:
        downloader = pooch.HTTPDownloader(timeout=SILENCE_SECONDS)
        return Path(archive.fetch(CIFAR10.filename, downloader=downloader))
    except (RequestException, ValueError, OSError) as error:
        reason, _, _ = str(error).partition(". ")
        raise UserError(
            f"cannot download CIFAR-10 from {url} to {request.raw_folder} in {attempts} "
            f"attempt{'s' if attempts > 1 else ''}: {reason}; give another --mirror-url, or the "
            f"archive {CIFAR10.filename} with --path"
        ) from error
