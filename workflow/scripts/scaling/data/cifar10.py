"""CIFAR-10 as published: downloaded or found, checked by md5, read by torchvision."""

import socket
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError

import numpy as np
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential
from torchvision.datasets import CIFAR10
from torchvision.datasets.utils import (
    calculate_md5,
    check_integrity,
    download_url,
    extract_archive,
)

from scaling.core import files
from scaling.core.errors import UserError
from scaling.data.dataset import ImageDataset

ATTEMPT_WAIT = wait_exponential(multiplier=2, max=60)
SILENCE_SECONDS = 60.0
NETWORK_ERRORS = (URLError, ConnectionError, TimeoutError, ssl.SSLError, HTTPException)


class _DownloadFailed(Exception):
    """One attempt failed in a way that another attempt may mend."""


class _Batches(CIFAR10):
    """torchvision's reader, with the folder that holds the batch files themselves as its root."""

    base_folder = ""


def fetch(path: Path | None, raw_folder: Path, url: str | None, attempts: int) -> tuple[Path, str]:
    """Make sure that CIFAR-10 is here, whole: where it lies and its origin in words.

    `path` is an archive (cifar-10-python.tar.gz), or a folder that is or holds the archive or
    cifar-10-batches-py; nothing is copied from it. Without `path` the archive is downloaded into
    `raw_folder` from `url` (torchvision's when None), unless it lies there already.
    Raises UserError when nothing usable is there, or after the last attempt to download it.
    """
    if path is None:
        archive = raw_folder / CIFAR10.filename
        if not check_integrity(archive, CIFAR10.tgz_md5):
            _download(url or CIFAR10.url, archive, attempts)
        place = archive
    else:
        place = _locate(path)
    if place.is_dir():
        return place, f"CIFAR-10 (Krizhevsky 2009), {CIFAR10.base_folder}, md5 of each file checked"
    return place, f"CIFAR-10 (Krizhevsky 2009), {CIFAR10.filename}, md5 {CIFAR10.tgz_md5}"


def read(path: Path) -> ImageDataset:
    """The dataset in the archive or folder that `fetch` accepts as its `path`, checked again."""
    place = _locate(path)
    if place.is_dir():
        return _read_batches(place)
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


def _download(url: str, archive: Path, attempts: int) -> None:
    retrying = Retrying(
        retry=retry_if_exception_type(_DownloadFailed),
        stop=stop_after_attempt(attempts),
        wait=ATTEMPT_WAIT,
        reraise=True,
    )
    try:
        with files.atomic_path(archive) as temporary:
            retrying(_download_once, url, temporary)
    except _DownloadFailed as error:
        raise UserError(
            f"cannot download CIFAR-10 from {url} in {attempts} "
            f"attempt{'s' if attempts > 1 else ''}: {error}; give another --mirror-url, or the "
            f"archive {CIFAR10.filename} with --path"
        ) from error


def _download_once(url: str, target: Path) -> None:
    try:
        with _silence_limit():
            download_url(url, target.parent, target.name, CIFAR10.tgz_md5)
    except NETWORK_ERRORS as error:
        raise _DownloadFailed(str(error) or type(error).__name__) from error
    except ValueError as error:
        raise UserError(f"{url!r} is not a URL: {error}") from error
    except RuntimeError as error:
        # torchvision says so when what arrived has another md5.
        raise _DownloadFailed(
            f"{target.stat().st_size} bytes came, with md5 {calculate_md5(target)} instead of "
            f"{CIFAR10.tgz_md5} (truncated, or another file)"
        ) from error


@contextmanager
def _silence_limit() -> Iterator[None]:
    """A server that sends nothing for SILENCE_SECONDS is an error; torchvision sets no limit."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(SILENCE_SECONDS)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
