"""A dataset's checks, file and manifest; digits and gratings."""

import numpy as np
import pytest

from examples.stored import SOURCE
from scaling.core.errors import UserError
from scaling.core.records.kind import DATASET
from scaling.data import dataset, generated
from scaling.data.dataset import ImageDataset, Request
from training_runs import dark_and_light


def small_dataset(**changes):
    """Return images of two classes, with changed fields."""
    return ImageDataset(**vars(dark_and_light()) | changes)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"train_labels": np.array([0, 0, 0])}, "class 'light' has no train image"),
        ({"test_labels": np.array([1, 1])}, "class 'dark' has no test image"),
        ({"test_labels": np.array([1, 2])}, "test label 2 is outside the 2 classes"),
        ({"train_labels": np.array([0, 1, -1])}, "train label -1 is outside the 2 classes"),
        ({"classes": ["cat", "cat"]}, "class names must be distinct, not cat, cat"),
    ],
)
def test_inconsistent_dataset_is_refused_with_the_reason(changes, complaint):
    with pytest.raises(UserError) as caught:
        small_dataset(**changes)
    assert complaint in str(caught.value)


def test_saved_dataset_is_loaded_and_damaged_file_refused(tmp_path):
    path, other = tmp_path / "new" / "images.npz", tmp_path / "other.npz"
    saved = small_dataset()
    dataset.save(saved, path)
    loaded = vars(dataset.load(path))
    assert loaded.pop("classes") == ["dark", "light"]
    for name, array in loaded.items():
        assert array.dtype == getattr(saved, name).dtype
        assert np.array_equal(array, getattr(saved, name))
    np.savez(other, weights=np.zeros(3))
    content = path.read_bytes()
    changed = content[:2_000] + bytes([content[2_000] ^ 1]) + content[2_001:]
    damaged = [content[:kept] for kept in (0, 100, 5_000, -1)]
    told = r"images\.npz is missing, truncated or damaged; delete"
    for found in (*damaged, changed, other.read_bytes(), None):
        path.unlink()
        if found is not None:
            path.write_bytes(found)
        with pytest.raises(UserError, match=told):
            dataset.load(path)


def test_digits_have_the_manifest_of_a_stored_study():
    """The manifest has counts, mean, standard deviation and a checksum of all arrays."""
    data, origin = generated.digits(Request(source="digits"))
    stored = DATASET.read(SOURCE / "manifest.json")
    assert dataset.manifest(data, "digits", origin) == stored
    assert stored["mean"] == pytest.approx((data.train_images / 255).mean(axis=(0, 1, 2)))
    assert stored["std"] == pytest.approx((data.train_images / 255).std(axis=(0, 1, 2)))


def test_seed_fixes_images_and_test_images_have_their_own():
    asked = Request(source="synthetic", train_images=50, test_images=50, seed=3)
    asked = asked, asked, asked.model_copy(update={"seed": 4})
    first, again, other = (generated.synthetic(one)[0] for one in asked)
    assert np.array_equal(first.train_images, again.train_images)
    assert np.array_equal(first.test_images, again.test_images)
    for unlike in (other.train_images, first.test_images):
        assert not np.array_equal(first.train_images, unlike)
