"""Gratings: balanced, drawn by seed, and neither trivial nor impossible to learn."""

import numpy as np
from sklearn.linear_model import RidgeClassifier

from scaling.data import generated
from scaling.data.dataset import Request


def gratings(train, test, seed=0):
    asked = Request(source="synthetic", train_images=train, test_images=test, seed=seed)
    return generated.synthetic(asked)[0]


def test_any_number_of_gratings_has_balanced_classes():
    data = gratings(2_503, 17)
    assert data.train_images.shape == (2_503, 32, 32, 3)
    assert sorted(np.bincount(data.train_labels)) == [250] * 7 + [251] * 3


def test_seed_fixes_images_and_test_images_have_their_own():
    first, again, other = (gratings(50, 50, seed) for seed in (3, 3, 4))
    assert np.array_equal(first.train_images, again.train_images)
    assert np.array_equal(first.test_images, again.test_images)
    for unlike in (other.train_images, first.test_images):
        assert not np.array_equal(first.train_images, unlike)


def spectra(images):
    """The size of each low spatial frequency of each channel: blind to where the stripes lie."""
    transformed = np.abs(np.fft.fft2(images.astype(float), axes=(1, 2)))
    return transformed[:, :7, [*range(7), *range(-6, 0)]].reshape(len(images), -1)


def test_pixels_alone_do_not_tell_the_class_but_stripes_do():
    data = gratings(1_000, 500)

    def accuracy(describe):
        fitted = RidgeClassifier(alpha=1e4).fit(describe(data.train_images), data.train_labels)
        return float(fitted.score(describe(data.test_images), data.test_labels))

    # Chance is 0.1. Neither is perfect: neighbouring angles overlap.
    assert accuracy(lambda images: images.reshape(len(images), -1).astype(float)) < 0.3
    assert 0.6 < accuracy(spectra) < 0.99
