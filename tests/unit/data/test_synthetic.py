"""Synthetic images: balanced, repeatable, and neither trivial nor impossible to learn."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

from scaling.core.errors import UserError
from scaling.data import synthetic


def test_any_number_of_images_has_balanced_classes():
    data = synthetic.generate(2_503, 17, seed=0)
    assert data.train_images.shape == (2_503, 32, 32, 3)
    assert sorted(np.bincount(data.train_labels)) == [250] * 7 + [251] * 3
    assert sorted(np.bincount(data.test_labels)) == [1] * 3 + [2] * 7


def test_a_seed_fixes_every_image_another_changes_them_and_test_images_have_their_own():
    first, again, other = (synthetic.generate(50, 50, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(first.train_images, again.train_images)
    assert np.array_equal(first.test_images, again.test_images)
    for unlike in (other.train_images, first.test_images):
        assert not np.array_equal(first.train_images, unlike)


@pytest.mark.parametrize(("train", "test", "split"), [(9, 10, "train"), (10, 9, "test")])
def test_fewer_images_than_classes_are_refused(train, test, split):
    with pytest.raises(UserError, match=f"need at least 10 {split} images, .* not 9"):
        synthetic.generate(train, test, seed=0)


def spectra(images):
    """The size of each low spatial frequency of each channel: blind to where the stripes lie."""
    transformed = np.abs(np.fft.fft2(images.astype(float), axes=(1, 2)))
    return transformed[:, :7, [*range(7), *range(-6, 0)]].reshape(len(images), -1)


def test_pixels_alone_do_not_tell_the_class_but_stripes_do():
    data = synthetic.generate(1_000, 500, seed=0)

    def accuracy(describe):
        fitted = RidgeClassifier(alpha=1e4).fit(describe(data.train_images), data.train_labels)
        return float(fitted.score(describe(data.test_images), data.test_labels))

    # Chance is 0.1. Neither is perfect: neighbouring angles overlap.
    assert accuracy(lambda images: images.reshape(len(images), -1).astype(float)) < 0.3
    assert 0.6 < accuracy(spectra) < 0.99
