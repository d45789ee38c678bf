"""scikit-learn's digits as a dataset of CIFAR's geometry."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from scaling.data import digits


@pytest.fixture(scope="module")
def data():
    return digits.read()[0]


def test_every_digit_has_the_same_share_of_1500_train_and_297_test_images(data):
    assert data.train_images.shape == (1500, 32, 32, 3)
    assert data.test_images.shape == (297, 32, 32, 3)
    of_all = np.bincount(load_digits().target)
    in_test = np.bincount(data.test_labels)
    assert (np.bincount(data.train_labels) + in_test == of_all).all()
    assert np.abs(in_test - of_all * 297 / 1797).max() < 1


def test_an_image_still_shows_its_digit(data):
    # Averaged back over blocks of 4x4, each image lies nearest to one with its own label.
    originals = load_digits()
    blocks = data.test_images[:50, ..., 0].reshape(50, 8, 4, 8, 4).mean(axis=(2, 4)) * 16 / 255
    assert (data.train_images == data.train_images[..., :1]).all()
    distances = ((blocks[:, None] - originals.images[None]) ** 2).sum(axis=(2, 3))
    assert (originals.target[distances.argmin(axis=1)] == data.test_labels[:50]).all()
