"""Read CIFAR-10 from a path or a download, and verify its md5 checksums."""

import shutil
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
"""A download fails after this number of seconds without data from the server."""
BATCHES, ARCHIVE = CIFAR10.base_folder, CIFAR10.filename
AGAIN = f"fetch {ARCHIVE} again from {CIFAR10.url}"


def read(request: Request) -> tuple[ImageDataset, str]:
    """Return CIFAR-10 and a text about its origin.

    `request.path` is the archive cifar-10-python.tar.gz, the folder cifar-10-batches-py, or a
    folder that contains one of the two. Without a path, the archive is downloaded to
    `request.raw_folder`, unless it is already there. UserError if a file is missing or damaged, or
    if the download fails.
    """
    path = Path(request.path).expanduser() if request.path else _downloaded(request)
    origin = "CIFAR-10 (Krizhevsky 2009), "
    folder = path.parent if path.name == BATCHES else path
    if (folder / BATCHES).is_dir():
        return _read(folder), f"{origin}{BATCHES}, md5 of each file checked"
    archive = path / ARCHIVE if path.is_dir() else path
    if not archive.is_file():
        raise UserError(
            f"there is neither {BATCHES} nor {ARCHIVE} at {path}; "
            "give a folder that has one, or leave the path out to download"
        )
    if not check_integrity(archive, CIFAR10.tgz_md5):
        raise UserError(f"{archive} is truncated or damaged, by its md5; {AGAIN}")
    with tempfile.TemporaryDirectory(prefix="cifar10-") as unpacked:
        shutil.unpack_archive(archive, unpacked, "gztar", filter="data")
        return _read(Path(unpacked)), f"{origin}{ARCHIVE}, md5 {CIFAR10.tgz_md5}"


def _read(folder: Path) -> ImageDataset:
    try:
        train, test = CIFAR10(folder, train=True), CIFAR10(folder, train=False)
    except RuntimeError as error:
        raise UserError(
            f"a file of {folder / BATCHES} is missing, truncated or damaged, by its md5; {AGAIN}"
        ) from error
    train_labels, test_labels = (np.array(split.targets, dtype=np.int64) for split in (train, test))
    return ImageDataset(train.data, train_labels, test.data, test_labels, list(train.classes))


def _downloaded(request: Request) -> Path:
    url, attempts = request.mirror_url or CIFAR10.url, request.download_attempts
    archive = pooch.create(
        path=request.raw_folder,
        base_url="",
        registry={ARCHIVE: f"md5:{CIFAR10.tgz_md5}"},
        urls={ARCHIVE: url},
        retry_if_failed=attempts - 1,
    )
    try:
        downloader = pooch.HTTPDownloader(timeout=SILENCE_SECONDS)
        return Path(archive.fetch(ARCHIVE, downloader=downloader))
    except (RequestException, ValueError, OSError) as error:
        reason, _, _ = str(error).partition(". ")
        raise UserError(
            f"cannot download CIFAR-10 from {url} to {request.raw_folder} in {attempts} "
            f"attempt{'s' if attempts > 1 else ''}: {reason}; give another --mirror-url, or the "
            f"archive {ARCHIVE} with --path"
        ) from error
