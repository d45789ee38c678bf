"""A user's own images, in a folder or a tar archive."""

import io
import json
import tarfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import dataset_fetch
import dataset_prepare
from scaling.core.errors import UserError
from scaling.data import dataset, images
from scaling.data.dataset import Download, ImageDataset, MadeUp

COLOURS = {"cat": (200, 10, 10), "dog": (10, 200, 10)}
SUFFIXES = {"tar": "w", "tar.gz": "w:gz", "tar.xz": "w:xz", "tar.bz2": "w:bz2"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two train images and one test image of cats (red) and of dogs (green)."""
    for split, numbers in (("train", (1, 2)), ("test", (3,))):
        for class_name, colour in COLOURS.items():
            (tmp_path / "mine" / split / class_name).mkdir(parents=True)
            for number in numbers:
                picture = Image.new("RGB", (32, 32), colour)
                picture.putpixel((0, 0), (number, number, number))
                picture.save(tmp_path / "mine" / split / class_name / f"{number}.png")
    return tmp_path / "mine"


def archive_of(folder: Path, suffix: str = "tar.gz") -> Path:
    path = folder.parent / f"mine.{suffix}"
    with tarfile.open(path, SUFFIXES[suffix]) as tar:  # type: ignore[call-overload]
        for split in sorted(folder.iterdir(), reverse=True):
            tar.add(split, arcname=split.name)
    return path


NOT_MADE_UP = MadeUp(0, 0, 0)


def read(path: Path) -> ImageDataset:
    return images.read(path, NOT_MADE_UP)[0]


def checksum(data: ImageDataset) -> str:
    return str(dataset.manifest(data, "images", "")["checksum"])


def test_folder_names_are_the_classes_and_pixels_are_kept(folder: Path) -> None:
    data, resized = images.read(folder, NOT_MADE_UP)
    assert data.classes == ["cat", "dog"]
    assert resized == ""
    # By file name, then class: the number in the first pixel, the class in the others.
    assert data.train_images[:, 0, 0, 0].tolist() == [1, 1, 2, 2]
    assert data.train_labels.tolist() == [0, 1, 0, 1]
    assert data.train_images[:, 31, 31].tolist() == [[200, 10, 10], [10, 200, 10]] * 2
    assert data.test_images[:, 0, 0, 0].tolist() == [3, 3]
    assert data.test_labels.tolist() == [0, 1]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_archive_gives_the_same_dataset_as_its_folder(folder: Path, suffix: str) -> None:
    data = read(archive_of(folder, suffix))
    assert checksum(data) == checksum(read(folder))


def test_an_archive_made_with_a_leading_dot_is_the_same(folder: Path) -> None:
    with tarfile.open(folder.parent / "dot.tar", "w") as tar:
        tar.add(folder, arcname=".")
    data = read(folder.parent / "dot.tar")
    assert checksum(data) == checksum(read(folder))


def test_an_image_archived_twice_counts_once_as_it_was_last(folder: Path) -> None:
    path = archive_of(folder, "tar")
    Image.new("RGB", (32, 32), (9, 9, 9)).save(folder / "test" / "cat" / "3.png")
    Image.new("RGB", (32, 32), (8, 8, 8)).save(folder / "test" / "cat" / "4.png")
    with tarfile.open(path, "a") as tar:
        for name in ("test/cat/3.png", "test/cat/4.png"):
            tar.add(folder / name, arcname=name)
    data = read(path)
    assert checksum(data) == checksum(read(folder))
    assert data.test_images[0, 5, 5].tolist() == [9, 9, 9]


def test_other_sizes_and_modes_become_32x32_rgb_and_are_reported(
    folder: Path, tmp_path: Path
) -> None:
    Image.new("L", (64, 48), 77).save(folder / "train" / "cat" / "1.png")
    Image.new("RGBA", (32, 32), (1, 2, 3, 128)).save(folder / "train" / "dog" / "1.png")
    dataset_fetch.main(
        ["--source=images", f"--path={folder}", f"--raw-folder={tmp_path}/raw",
         f"--output={tmp_path}/source.json"]
    )  # fmt: skip
    dataset_prepare.main(
        [f"--fetched={tmp_path}/source.json", f"--output={tmp_path}/images.npz",
         f"--manifest={tmp_path}/manifest.json"]
    )  # fmt: skip
    data = dataset.load(tmp_path / "images.npz")
    assert (data.train_images[0] == 77).all()
    assert (data.train_images[1] == [1, 2, 3]).all()
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["origin"] == "images in folder mine; resized to 32x32: 1"
    assert manifest["train_counts"] == [2, 2]


def test_hidden_files_and_what_lies_beside_the_splits_are_left_out(folder: Path) -> None:
    before = checksum(read(folder))
    (folder / "README").write_text("mine")
    (folder / "extra").mkdir()
    (folder / "train" / ".DS_Store").write_text("x")
    (folder / "train" / "cat" / "._1.png").write_text("x")
    assert checksum(read(folder)) == before
    assert checksum(read(archive_of(folder))) == before


def test_a_linked_class_folder_is_followed(folder: Path) -> None:
    before = checksum(read(folder))
    cats = (folder / "train" / "cat").rename(folder.parent / "elsewhere")
    (folder / "train" / "cat").symlink_to(cats)
    assert checksum(read(folder)) == before


def remove(path: Path) -> None:
    for file in sorted(path.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    path.rmdir()


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize(
    ("missing", "complaint"),
    [
        ("train", "has no images in train/; they must lie as train/<class>/<image>"),
        ("test", "has no images in test/; they must lie as train/<class>/<image>"),
        ("test/dog", "has no image of class 'dog' in test/dog/"),
        ("train/cat", "has no image of class 'cat' in train/cat/"),
    ],
)
def test_a_missing_split_or_class_is_named(
    folder: Path, archived: bool, missing: str, complaint: str
) -> None:
    remove(folder / missing)
    path = archive_of(folder) if archived else folder
    with pytest.raises(UserError) as caught:
        read(path)
    assert f"{path} {complaint}" in str(caught.value)


@pytest.mark.parametrize("archived", [False, True])
def test_an_empty_class_is_named(folder: Path, archived: bool) -> None:
    (folder / "train" / "cow").mkdir()
    (folder / "test" / "cow").mkdir()
    with pytest.raises(UserError, match="has no image of class 'cow' in train/cow/"):
        read(archive_of(folder) if archived else folder)


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("place", ["train/loose.png", "train/cat/more/deep.png"])
def test_a_file_at_another_depth_is_named(folder: Path, archived: bool, place: str) -> None:
    (folder / place).parent.mkdir(exist_ok=True)
    Image.new("RGB", (32, 32)).save(folder / place)
    with pytest.raises(UserError, match=r"holds train/\S+, but images must lie as train/<class>"):
        read(archive_of(folder) if archived else folder)


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("kept", [0, 4, 40, -20])
def test_an_unreadable_image_is_named(folder: Path, archived: bool, kept: int) -> None:
    broken = folder / "test" / "dog" / "3.png"
    broken.write_bytes(broken.read_bytes()[:kept])
    with pytest.raises(UserError, match=r": test/dog/3\.png cannot be read as an image"):
        read(archive_of(folder) if archived else folder)


@given(position=st.integers(0, 10_000), value=st.integers(0, 255), kept=st.integers(0, 10_000))
@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"])
def test_a_damaged_image_is_decoded_or_named_but_never_a_crash(
    form: str, position: int, value: int, kept: int
) -> None:
    stream = io.BytesIO()
    picture = np.arange(32 * 32 * 3, dtype=np.uint16).astype(np.uint8).reshape(32, 32, 3)
    Image.fromarray(picture).save(stream, format=form)
    content = bytearray(stream.getvalue())
    content[position % len(content)] = value
    with suppress(UserError):
        pixels, _ = images._decode(bytes(content[:kept]), "broken.png")
        assert len(pixels) == 3072


def test_sixteen_bit_images_are_refused_rather_than_clipped(folder: Path) -> None:
    deep = Image.fromarray(np.full((32, 32), 40_000, dtype=np.uint16))
    deep.save(folder / "train" / "cat" / "1.png")
    with pytest.raises(UserError, match=r"train/cat/1\.png has more than 8 bits per channel"):
        read(folder)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_archive_cut_off_anywhere_is_truncated(folder: Path, suffix: str) -> None:
    path = archive_of(folder, suffix)
    content = path.read_bytes()
    # The end of a plain archive is padding, which may be cut off without loss.
    length = len(content.rstrip(b"\0")) if suffix == "tar" else len(content)
    for kept in {*range(0, length, 97), *range(0, length, 512), length - 1}:
        path.write_bytes(content[:kept])
        with pytest.raises(UserError, match=r"mine\.\S+ is not a tar archive, or is truncated"):
            read(path)


def test_a_file_that_is_no_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(UserError, match=r"notes\.txt is not a tar archive"):
        read(tmp_path / "notes.txt")


@pytest.mark.parametrize("name", ["../train/cat/9.png", "/train/cat/9.png", "train/../../x/9.png"])
def test_an_archive_that_points_out_of_its_folder_is_refused(folder: Path, name: str) -> None:
    path = archive_of(folder, "tar")
    with tarfile.open(path, "a") as tar:
        tar.addfile(tarfile.TarInfo(name))
    with pytest.raises(UserError, match=f"holds {name}, which points out of its folder"):
        read(path)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_an_archive_are_refused(folder: Path, kind: bytes) -> None:
    path = archive_of(folder, "tar")
    with tarfile.open(path, "a") as tar:
        member = tarfile.TarInfo("train/cat/9.png")
        member.type, member.linkname = kind, "/etc/passwd"
        tar.addfile(member)
    with pytest.raises(UserError, match=r"holds train/cat/9\.png, which is a link or a device"):
        read(path)


def test_fetching_notes_where_the_images_lie_and_the_archive_s_checksum(folder: Path) -> None:
    assert images.fetch(folder, Download(folder)) == (folder, "images in folder mine")
    path = folder.parent / "abc.tar"
    path.write_bytes(b"abc")
    # The sha256 of "abc" as FIPS 180-2 prints it.
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert images.fetch(path, Download(path)) == (path, f"images in abc.tar, sha256 {digest}")


def test_no_path_or_one_that_does_not_exist_is_said_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the source images needs --path"):
        images.fetch(None, Download(tmp_path))
    with pytest.raises(UserError, match="absent does not exist"):
        images.fetch(tmp_path / "absent", Download(tmp_path))
    with pytest.raises(UserError, match="absent does not exist"):
        read(tmp_path / "absent")
