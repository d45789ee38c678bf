"""Read image files in folders train/<class>/* and test/<class>/*, or in a tar of these folders."""

import hashlib
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageFile

from scaling.core.errors import UserError
from scaling.data.dataset import ImageDataset, Request

SPLITS = ("train", "test")
LAYOUT = "train/<class>/<image> and test/<class>/<image>"
MOST_BYTES, MOST_TIMES = 100_000_000, 100
"""An archive may unpack to MOST_BYTES bytes or, if more, to MOST_TIMES times the archive's size."""


def read(request: Request) -> tuple[ImageDataset, str]:
    """Return the dataset at `request.path`, and a text on origin and number of resized images.

    Classes are the sorted folder names. Images are sorted by file name, then by class, so that
    classes alternate if the files of each class are numbered. Images of another size are resized
    bilinearly. Hidden files, and files outside train/ and test/, are ignored. UserError for an
    unreadable image, a wrong layout or a bad archive.
    """
    path, side = request.path and Path(request.path).expanduser(), request.image_size
    if not path or not (path.is_dir() or path.is_file()):
        raise UserError(f"{path or '--path'} does not exist; give a folder or tar of {LAYOUT}")
    if path.is_dir():
        data, resized = _read(path, path, side)
        origin = f"images in folder {path.name}"
    else:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        origin = f"images in {path.name}, sha256 {digest}"
        with tempfile.TemporaryDirectory(prefix="images-") as folder:
            _unpack(path, folder)
            data, resized = _read(Path(folder), path, side)
    return data, origin + (f"; resized to {side}x{side}: {resized}" if resized else "")


def _unpack(path: Path, folder: str) -> None:
    """Unpack `path` to `folder`; UserError if it is damaged, too large, or leaves `folder`."""
    most = max(MOST_BYTES, MOST_TIMES * path.stat().st_size)
    try:
        with tarfile.open(path) as archive:
            if sum(member.size for member in archive) > most:
                raise tarfile.ReadError(f"it unpacks to more than {most:,} bytes")
            archive.extractall(folder, filter="data")
            # tarfile stops at any invalid header. A whole archive ends with a block of zeros.
            stream: Any = archive.fileobj
            stream.seek(archive.offset)
            if stream.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
                raise tarfile.ReadError("it is cut off or damaged")
    except Exception as error:  # Each compression raises other errors.
        raise UserError(
            f"{path} is not a tar archive that can be unpacked ({error}); fetch it again, or make "
            "it of the files themselves (tar --dereference --hard-dereference)"
        ) from error


def _read(folder: Path, path: Path, side: int) -> tuple[ImageDataset, int]:
    """Return the dataset in `folder` and the number of resized images. UserErrors name `path`."""
    places = [place for split in SPLITS for place in folder.glob(f"{split}/[!.]*")]
    if missing := [split for split in SPLITS if not (folder / split).is_dir()]:
        there = ", ".join(sorted(each.name for each in folder.glob("[!.]*") if each.is_dir()))
        raise UserError(
            f"{path} has no folder {missing[0]} (it has {there or 'none'}): rename one, or make it "
            f"of {LAYOUT}"
        )
    if loose := [place for place in places if not place.is_dir()]:
        name = loose[0].relative_to(folder)
        raise UserError(
            f"{path}: {name} is beside the folders of classes: move it into one of them"
        )
    classes, arrays, resized = sorted({place.name for place in places}), list[Any](), 0
    for split in SPLITS:
        files = sorted(folder.glob(f"{split}/[!.]*/[!.]*"), key=lambda file: (file.name, file))
        images = np.empty((len(files), side, side, 3), dtype=np.uint8)
        for image, file in zip(images, files, strict=True):
            picture = _decode(file, f"{path}: {file.relative_to(folder)}")
            resized += picture.size != (side, side)
            image[:] = np.asarray(picture.resize((side, side), Image.Resampling.BILINEAR))
        arrays += [images, np.array([classes.index(file.parent.name) for file in files], np.int64)]
    data = ImageDataset(*[*arrays, classes])
    if len(classes) < 2 or not np.ptp(data.train_images, axis=(0, 1, 2)).all():
        raise UserError(
            f"{path} has {len(classes)} classes, or one value of a colour everywhere: give two "
            f"classes or more, as {LAYOUT}"
        )
    return data, resized


def _is_deep(image: ImageFile.ImageFile, content: bytes | bytearray) -> bool:
    """Return whether an image has more than 8 bits per channel. Pillow drops the extra bits."""
    if image.format == "JPEG2000":  # 3 bytes per component: (bits - 1), and others.
        components = content[content.find(b"\xff\x4f\xff\x51") + 40 :]
        return max(components[2 : 2 + 3 * int.from_bytes(components[:2]) : 3]) & 127 > 7
    if image.format == "AVIF":  # Bit high_bitdepth in AV1's configuration.
        return bool(content[content.find(b"av1C") + 6] & 64)
    tiles: list[Any] = [*image.tile, ("", None, 0, "")]
    codec, _, _, options = tiles[0]
    largest = options[1] if codec.startswith("ppm") else 0
    is_wide = image.mode.startswith(("I", "F")) or ";16" in str(options) or codec == "SGI16"
    return is_wide or largest > 255


def _decode(file: Path, name: str) -> Image.Image:
    """Return `file` as an RGB image. UserError (with `name`) if unreadable or over 8 bits deep."""
    try:
        with Image.open(file) as image:
            if _is_deep(image, file.read_bytes()):
                raise ValueError("it has more than 8 bits per channel")
            return image.convert("RGB")
    except Exception as error:  # Pillow's readers raise nearly anything for a damaged file.
        raise UserError(f"{name} cannot be read as an image ({error}): fix or remove it") from error
