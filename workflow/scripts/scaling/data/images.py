"""Image files sorted into folders, train/<class>/* and test/<class>/*, or a tar archive of them."""

import gzip
import hashlib
import io
import lzma
import math
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from scaling.core.errors import UserError
from scaling.data.dataset import IMAGE_SHAPE, Download, ImageDataset, MadeUp

SPLITS = ("train", "test")
LAYOUT = "train/<class>/<image> and test/<class>/<image>"
IMAGE_BYTES = math.prod(IMAGE_SHAPE)
DAMAGED_ARCHIVE = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


@dataclass
class _Split:
    """The pixels read so far, one image after another, and which image each (file, class) is."""

    pixels: bytearray = field(default_factory=bytearray)
    positions: dict[tuple[str, str], int] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)


def fetch(path: Path | None, download: Download) -> tuple[Path, str]:
    """Make sure that there is a folder or a tar archive at `path`: the path, its origin in words.

    Raises UserError otherwise.
    """
    if path is None:
        raise UserError(f"the source images needs --path: a folder or tar archive of {LAYOUT}")
    if not path.exists():
        raise UserError(f"{path} does not exist; give a folder or tar archive of {LAYOUT}")
    if path.is_dir():
        return path, f"images in folder {path.name}"
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return path, f"images in {path.name}, sha256 {digest}"


def read(path: Path, made_up: MadeUp) -> tuple[ImageDataset, str]:
    """Read the images at `path`; say how many had to be resized to 32×32 (bilinearly).

    Classes are the folder names, sorted. Images are ordered by file name, then class, so that
    numbered files come one class after another; a folder and an archive of it give the same
    dataset. Hidden files, and what lies beside train/ and test/, are left out.
    Raises UserError for an unreadable image, a class without images in either split, a layout
    other than this one, and a damaged archive.
    """
    splits = {split: _Split() for split in SPLITS}
    resized = 0
    for name, content in _entries(path):
        parts = name.parts
        if not parts or parts[0] not in splits or any(part.startswith(".") for part in parts):
            continue
        split = splits[parts[0]]
        if len(parts) <= 2 and content is None:
            split.classes.update(parts[1:])
        elif len(parts) == 3 and content is not None:
            pixels, was_resized = _decode(content, f"{path}: {name}")
            split.classes.add(parts[1])
            split.positions[parts[2], parts[1]] = len(split.pixels) // IMAGE_BYTES
            split.pixels += pixels
            resized += was_resized
        else:
            raise UserError(f"{path} holds {name}, but images must lie as {LAYOUT}")
    return _assemble(path, splits), f"; resized to 32x32: {resized}" if resized else ""


def _assemble(path: Path, splits: dict[str, _Split]) -> ImageDataset:
    classes = sorted(set().union(*(split.classes for split in splits.values())))
    for name, split in splits.items():
        if not split.positions:
            raise UserError(f"{path} has no images in {name}/; they must lie as {LAYOUT}")
        empty = set(classes) - {class_name for _, class_name in split.positions}
        if empty:
            raise UserError(
                f"{path} has no image of class {min(empty)!r} in {name}/{min(empty)}/; "
                "add one, or leave the class out of both train/ and test/"
            )
    train_images, train_labels = _arrays(splits["train"], classes)
    test_images, test_labels = _arrays(splits["test"], classes)
    return ImageDataset(train_images, train_labels, test_images, test_labels, classes)


def _arrays(split: _Split, classes: list[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    keys = sorted(split.positions)
    pixels = np.frombuffer(split.pixels, dtype=np.uint8).reshape(-1, *IMAGE_SHAPE)
    labels = np.array([classes.index(class_name) for _, class_name in keys], dtype=np.int64)
    return pixels[[split.positions[key] for key in keys]], labels


def _entries(path: Path) -> Iterator[tuple[PurePosixPath, bytes | None]]:
    """Name below `path` and bytes of each file; the bytes of a folder are None."""
    if not path.exists():
        raise UserError(f"{path} does not exist; give a folder or tar archive of {LAYOUT}")
    return _folder_entries(path) if path.is_dir() else _archive_entries(path)


def _folder_entries(folder: Path) -> Iterator[tuple[PurePosixPath, bytes | None]]:
    for split in SPLITS:
        for entry in (*folder.glob(f"{split}/*"), *folder.glob(f"{split}/*/*")):
            try:
                content = None if entry.is_dir() else entry.read_bytes()
            except OSError as error:
                raise UserError(f"cannot read {entry}: {error.strerror}") from error
            yield PurePosixPath(entry.relative_to(folder)), content


def _archive_entries(path: Path) -> Iterator[tuple[PurePosixPath, bytes | None]]:
    """Read straight from the archive: nothing is unpacked, so nothing can land elsewhere."""
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                _check_member(path, member)
                stream = archive.extractfile(member)
                yield PurePosixPath(member.name), stream.read() if stream else None
            # An archive ends with two empty blocks, of which tarfile has read the first; it takes
            # an archive cut off between two files for a whole one. Reading on to the end makes
            # the decompressor check its own end, too.
            if archive.fileobj is None or not archive.fileobj.read(-1):
                raise tarfile.ReadError("its end is missing")
    except DAMAGED_ARCHIVE as error:
        raise UserError(
            f"{path} is not a tar archive, or is truncated or damaged ({error}); fetch it again"
        ) from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error


def _check_member(path: Path, member: tarfile.TarInfo) -> None:
    """Refuse what has no place in an archive of images, although nothing is ever unpacked."""
    parts = PurePosixPath(member.name).parts
    if parts[:1] == ("/",) or ".." in parts:
        raise UserError(
            f"{path} holds {member.name}, which points out of its folder; "
            f"make an archive of {LAYOUT} alone"
        )
    if not (member.isfile() or member.isdir()):
        raise UserError(
            f"{path} holds {member.name}, which is a link or a device; "
            "make the archive with the files themselves (tar --dereference --hard-dereference)"
        )


def _decode(content: bytes, name: str) -> tuple[bytes, bool]:
    """The 32×32×3 bytes of an encoded image, and whether it had to be resized."""
    try:
        with Image.open(io.BytesIO(content)) as image:
            mode, pixels = image.mode, image.convert("RGB")
    except Exception as error:  # Pillow's readers raise nearly anything for a damaged file.
        raise UserError(f"{name} cannot be read as an image: fix or remove it") from error
    if mode.startswith(("I", "F")):
        raise UserError(f"{name} has more than 8 bits per channel; save it with 8 bits")
    size = IMAGE_SHAPE[:2]
    if pixels.size == size:
        return pixels.tobytes(), False
    return pixels.resize(size, Image.Resampling.BILINEAR).tobytes(), True
