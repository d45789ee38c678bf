"""A user's images in a folder or a tar archive."""

import hashlib
import shutil
import struct
import tarfile
import zlib

import pytest
from PIL import Image

from scaling.core.errors import UserError
from scaling.data import dataset, images
from scaling.data.dataset import Request

COLOURS = {"cat": (200, 10, 10), "dog": (10, 200, 10)}


@pytest.fixture
def folder(tmp_path):
    """Return a folder with two training images and one test image of cats and of dogs."""
    for split, numbers in (("train", (1, 2)), ("test", (3,))):
        for class_name, colour in COLOURS.items():
            (tmp_path / "mine" / split / class_name).mkdir(parents=True)
            for number in numbers:
                picture = Image.new("RGB", (32, 32), colour)
                picture.putpixel((0, 0), (number, number, number))
                picture.save(tmp_path / "mine" / split / class_name / f"{number}.png")
    return tmp_path / "mine"


def archive_of(folder, compression=""):
    path = folder.parent / f"mine.tar{compression}"
    with tarfile.open(path, f"w:{compression}") as tar:
        for split in sorted(folder.iterdir(), reverse=True):
            tar.add(split, arcname=split.name)
    return path


def read(path):
    return images.read(Request(source="images", path=str(path)))


def checksum(path):
    return str(dataset.manifest(read(path)[0], "images", "")["checksum"])


def test_folder_names_are_the_classes_and_pixels_are_kept(folder):
    data, origin = read(folder)
    assert origin == "images in folder mine"
    assert data.classes == ["cat", "dog"]
    # By file name, then class: the number in the first pixel, the class in the others.
    assert data.train_images[:, 0, 0, 0].tolist() == [1, 1, 2, 2]
    assert data.train_labels.tolist() == [0, 1, 0, 1]
    assert data.train_images[:, 31, 31].tolist() == [[200, 10, 10], [10, 200, 10]] * 2
    assert data.test_images[:, 0, 0, 0].tolist() == [3, 3]
    assert data.test_labels.tolist() == [0, 1]


def test_other_sizes_and_modes_become_32x32_rgb_and_are_reported(folder):
    Image.new("L", (64, 48), 77).save(folder / "train" / "cat" / "1.png")
    Image.new("RGBA", (32, 32), (1, 2, 3, 128)).save(folder / "train" / "dog" / "1.png")
    for name in ("4.jp2", "4.avif"):
        Image.new("RGB", (32, 32), (9, 9, 9)).save(folder / "test" / "cat" / name)
    data, origin = read(folder)
    assert (data.train_images[0] == 77).all()
    assert (data.train_images[1] == [1, 2, 3]).all()
    assert origin == "images in folder mine; resized to 32x32: 1"


def test_hidden_files_and_files_beside_splits_are_ignored(folder):
    before = checksum(folder)
    (folder / "README").write_text("mine")
    (folder / "extra").mkdir()
    (folder / "train" / ".DS_Store").write_text("x")
    (folder / "train" / "cat" / "._1.png").write_text("x")
    cats = (folder / "test" / "cat").rename(folder.parent / "elsewhere")
    (folder / "test" / "cat").symlink_to(cats)
    assert checksum(folder) == before


def in_one_colour(folder):
    for file in folder.glob("*/*/*.png"):
        Image.new("RGB", (32, 32), (10, 20, 30)).save(file)


def chunk(name, data):
    """Return a chunk of a PNG file."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


DEEP = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 16, 2, 0, 0, 0))
DEEP += chunk(b"IDAT", zlib.compress(bytes(7))) + chunk(b"IEND", b"")
"""A PNG of 16 bits per channel."""


def cut_off(folder):
    file = folder / "test/dog/3.png"
    file.write_bytes(file.read_bytes()[:-20])


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda at: shutil.rmtree(at / "train"), r"mine has no folder train \(it has test\): rena"),
        (lambda at: (at / "test").rename(at / "val"), r"no folder test \(it has train, val\)"),
        (lambda at: shutil.rmtree(at / "test/dog"), "class 'dog' has no test image"),
        (lambda at: (at / "train/loose").touch(), "train/loose is beside the folders of classes"),
        (lambda at: at.rename(at.parent / "cat"), "mine does not exist; give a folder or tar of"),
        (lambda at: [shutil.rmtree(cat) for cat in at.glob("*/cat")], "1 classes, .*, as train/<c"),
        (in_one_colour, "mine has 2 classes, or one value of a colour"),
        (cut_off, r": test/dog/3\.png cannot be read as an image"),
        (lambda at: Image.new("I;16", (8, 8)).save(at / "test/cat/3.png"), "more than 8 bits"),
        (lambda at: (at / "test/cat/4.ppm").write_bytes(b"P6 1 1 65535\n" + bytes(6)), "than 8 b"),
        (lambda at: (at / "test/cat/4.png").write_bytes(DEEP), "more than 8 bits"),
    ],
)
def test_wrong_layout_or_unreadable_image_is_named(folder, change, complaint):
    change(folder)
    with pytest.raises(UserError, match=complaint):
        read(folder)


@pytest.mark.parametrize("compression", ["", "gz", "xz"])
def test_archive_equals_its_folder_and_truncation_is_named(folder, compression):
    path = archive_of(folder, compression)
    assert checksum(path) == checksum(folder)
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    assert read(path)[1] == f"images in mine.tar{compression}, sha256 {digest}"
    for kept in (0, 97, content.find(b"test/dog/3.png") if not compression else -97):
        path.write_bytes(content[:kept])
        with pytest.raises(UserError, match=r"mine\.\S+ is not a tar archive that can be unpacked"):
            read(path)


@pytest.mark.parametrize(
    ("name", "kind"), [("train/../../9.png", tarfile.REGTYPE), ("train/9", tarfile.FIFOTYPE)]
)
def test_archive_that_writes_elsewhere_is_refused(folder, name, kind):
    path = archive_of(folder)
    with tarfile.open(path, "a") as tar:
        member = tarfile.TarInfo(name)
        member.type = kind
        tar.addfile(member)
    with pytest.raises(UserError, match="is not a tar archive that can be unpacked"):
        read(path)


def test_archive_that_unpacks_to_too_much_is_refused(folder, monkeypatch):
    monkeypatch.setattr(images, "MOST_BYTES", 9_000_000)
    (folder / "train/cat/0.png").write_bytes(bytes(9_000_000))
    with pytest.raises(UserError, match="it unpacks to more than 9,000,000 bytes"):
        read(archive_of(folder, "xz"))
