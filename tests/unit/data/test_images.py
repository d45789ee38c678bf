"""A user's own images, in a folder or a tar archive."""

import hashlib
import os
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
SUFFIXES = {"tar": "w", "tar.gz": "w:gz", "tar.xz": "w:xz", "tar.bz2": "w:bz2"}


@pytest.fixture
def folder(tmp_path):
    """Two train images and one test image of cats (red) and of dogs (green)."""
    for split, numbers in (("train", (1, 2)), ("test", (3,))):
        for class_name, colour in COLOURS.items():
            (tmp_path / "mine" / split / class_name).mkdir(parents=True)
            for number in numbers:
                picture = Image.new("RGB", (32, 32), colour)
                picture.putpixel((0, 0), (number, number, number))
                picture.save(tmp_path / "mine" / split / class_name / f"{number}.png")
    return tmp_path / "mine"


def archive_of(folder, suffix="tar.gz"):
    path = folder.parent / f"mine.{suffix}"
    with tarfile.open(path, SUFFIXES[suffix]) as tar:  # type: ignore[call-overload]
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


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_archive_gives_the_same_dataset_as_its_folder_and_one_cut_off_is_named(folder, suffix):
    path = archive_of(folder, suffix)
    assert checksum(path) == checksum(folder)
    content = path.read_bytes()
    origin = f"images in mine.{suffix}, sha256 {hashlib.sha256(content).hexdigest()}"
    assert read(path)[1] == origin
    for kept in (0, 97, len(content) // 2 + 97 if suffix != "tar" else 1200):
        path.write_bytes(content[:kept])
        with pytest.raises(UserError, match=r"mine\.\S+ is not a tar archive that can be unpacked"):
            read(path)


def test_other_sizes_and_modes_become_32x32_rgb_and_are_reported(folder):
    Image.new("L", (64, 48), 77).save(folder / "train" / "cat" / "1.png")
    Image.new("RGBA", (32, 32), (1, 2, 3, 128)).save(folder / "train" / "dog" / "1.png")
    data, origin = read(folder)
    assert (data.train_images[0] == 77).all()
    assert (data.train_images[1] == [1, 2, 3]).all()
    assert origin == "images in folder mine; resized to 32x32: 1"


def test_hidden_files_and_what_lies_beside_the_splits_are_left_out(folder):
    before = checksum(folder)
    (folder / "README").write_text("mine")
    (folder / "extra").mkdir()
    (folder / "train" / ".DS_Store").write_text("x")
    (folder / "train" / "cat" / "._1.png").write_text("x")
    cats = (folder / "test" / "cat").rename(folder.parent / "elsewhere")
    (folder / "test" / "cat").symlink_to(cats)
    assert checksum(folder) == before


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda at: shutil.rmtree(at / "train"), "class 'cat' has no train image"),
        (lambda at: shutil.rmtree(at / "test/dog"), "class 'dog' has no test image"),
        (lambda at: (at / "train/loose").touch(), "class 'loose' has no train image"),
        (lambda at: (at / "train/cat/more").mkdir(), r"train/cat/more .* \(it is no file\)"),
        (lambda at: at.rename(at.parent / "cat"), "mine does not exist; give a folder or tar of"),
        (lambda at: [shutil.rmtree(cat) for cat in at.glob("*/cat")], "1 classes, .*, as train/<c"),
    ],
)
def test_another_layout_or_a_missing_split_or_class_is_named(folder, change, complaint):
    change(folder)
    with pytest.raises(UserError, match=complaint):
        read(folder)


def test_an_unreadable_image_is_named(folder):
    broken = folder / "test" / "dog" / "3.png"
    whole = broken.read_bytes()
    for kept in (0, 40, -20):
        broken.write_bytes(whole[:kept])
        for path in (folder, archive_of(folder)):
            with pytest.raises(UserError, match=r": test/dog/3\.png cannot be read as an image"):
                read(path)


def test_an_archive_that_is_cut_off_damaged_or_writes_elsewhere_is_named(folder):
    path = archive_of(folder, "tar")
    with tarfile.open(path) as tar:
        starts = [member.offset for member in tar if member.isfile()]
    content = path.read_bytes()
    cut = [content[: start + more] for start in starts[1:] for more in (0, 100, 511)]
    damaged = content[: starts[-1]] + b"x" + content[starts[-1] + 1 :]
    for kept in (*cut, damaged, content.rstrip(b"\0")):
        path.write_bytes(kept)
        with pytest.raises(UserError, match=r"unpacked \((it is cut off|unexpected end)"):
            read(path)
    for name, kind in (("train/../../9.png", tarfile.REGTYPE), ("train/9", tarfile.FIFOTYPE)):
        path.write_bytes(content)
        with tarfile.open(path, "a") as tar:
            member = tarfile.TarInfo(name)
            member.type = kind
            tar.addfile(member)
        with pytest.raises(UserError, match="is not a tar archive that can be unpacked"):
            read(path)


def test_a_small_archive_of_much_is_not_unpacked(folder, monkeypatch):
    monkeypatch.setattr(images, "MOST_BYTES", 9_000_000)
    with (folder / "train/cat/0.png").open("wb") as file:
        file.truncate(9_000_000)
    with pytest.raises(UserError, match="it unpacks to more than 9,000,000 bytes"):
        read(archive_of(folder, "tar.xz"))


def chunk(kind, content):
    checksum = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + checksum


def png(side, depth, content, colours=2):
    """A PNG of so many bits a colour, which Pillow cannot write; of grays for colours 0."""
    header = struct.pack(">IIBBBBB", side, side, depth, colours, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(content)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (png(8, 16, (b"\0" + b"\x12\x34" * 8) * 8, 0), "has more than 8 bits per channel"),
        (png(8, 16, (b"\0" + b"\x12\x34" * 24) * 8), "has more than 8 bits per channel"),
        (b"P6 8 8 1023\n" + b"\x01\x34" * 192, "has more than 8 bits per channel"),
        (png(20_000, 8, b""), r"cannot be read .* \(Image size \(400000000 pixels\) exceeds"),
    ],
    ids=["gray", "colours", "10 bits", "pixels"],
)
def test_sixteen_bits_are_refused_rather_than_clipped_and_too_many_pixels(
    folder, content, complaint
):
    (folder / "train/cat/1.png").write_bytes(content)
    with pytest.raises(UserError, match=rf"train/cat/1\.png {complaint}"):
        read(folder)


def test_what_is_no_file_is_not_waited_for(folder):
    place = folder / "train/cat/1.png"
    os.mkfifo(folder / "fifo")
    for target in ("/dev/zero", "nowhere", folder / "fifo"):
        with pytest.raises(UserError, match="does not exist; give a folder or tar"):
            read(folder / target)
        place.unlink()
        place.symlink_to(target)
        with pytest.raises(UserError, match=r"train/cat/1\.png .* \(it is no file\)"):
            read(folder)


def test_names_that_are_no_utf_8_and_images_without_a_difference_are_refused(folder):
    odd = folder / os.fsdecode(b"train/c\xe9t")
    (folder / "train/cat").rename(odd)
    with pytest.raises(UserError, match=r"'c\\udce9t' is no name of printable characters"):
        read(folder)
    odd.rename(folder / "train/cat")
    for file in folder.glob("*/*/*.png"):
        Image.new("RGB", (32, 32), (10, 20, 30)).save(file)
    with pytest.raises(UserError, match="mine has 2 classes, or one value of a colour"):
        read(folder)
