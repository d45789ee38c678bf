"""Datasets that need no files: scikit-learn's handwritten digits, and synthetic gratings.

A synthetic image is a grating: stripes with an angle and a pair of colours. A class is one of 5
angles and one of 2 pairs of colours. Phase, width and contrast are random, so no single pixel
determines the class: a linear classifier learns little, a convolutional network learns much. An
image deviates at random from its class's angle. Classes overlap, so no network is perfect.
"""

import numpy as np
from numpy.typing import NDArray

from scaling.data.dataset import ImageDataset, Request, resize

DIGITS = "scikit-learn load_digits (1,797 handwritten digits of 8x8), enlarged to 32x32"
DIGITS_TEST_IMAGES = 297
GRATINGS = "synthetic gratings, 5 angles in 2 pairs of colours"
COLOUR_PAIRS = {"red-green": (1.0, -1.0, 0.0), "yellow-blue": (0.5, 0.5, -1.0)}
ANGLES_DEGREES = (0, 36, 72, 108, 144)
ANGLE_SPREAD_DEGREES = 10.0
CYCLES_PER_IMAGE = (2.0, 5.0)
CONTRAST_LEVELS = (15.0, 50.0)
TINT_LEVELS = 20.0
NOISE_LEVELS = 40.0
CLASSES = [f"{colours} at {angle} degrees" for colours in COLOUR_PAIRS for angle in ANGLES_DEGREES]
# Number of 32×32 images per chunk. It limits memory, and fixes the order of random draws.
CHUNK_IMAGES = 2000


def digits(request: Request) -> tuple[ImageDataset, str]:
    """Return scikit-learn's digits (1,500 training, 297 test images), and a text on their origin.

    All calls return the same images of 32 × 32 pixels. The 17 grey levels are scaled to 0 to 255,
    in three equal channels. The split is stratified by class.
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    loaded = load_digits()
    grey = np.round(loaded.images * (255 / 16)).astype(np.uint8)
    train_images, test_images, train_labels, test_labels = train_test_split(
        resize(np.repeat(grey[..., None], 3, axis=3), 32),
        loaded.target.astype(np.int64),
        test_size=DIGITS_TEST_IMAGES,
        stratify=loaded.target,
        random_state=0,
    )
    classes = [str(digit) for digit in range(10)]
    return ImageDataset(train_images, train_labels, test_images, test_labels, classes), DIGITS


def synthetic(request: Request) -> tuple[ImageDataset, str]:
    """Return gratings in 10 classes of equal size (± 1 image), and a text about origin and seed."""
    train_seed, test_seed = np.random.SeedSequence(request.seed).spawn(2)
    data = ImageDataset(
        *_split(request.train_images, np.random.default_rng(train_seed), request.image_size),
        *_split(request.test_images, np.random.default_rng(test_seed), request.image_size),
        classes=list(CLASSES),
    )
    return data, f"{GRATINGS}, seed {request.seed}"


def _split(
    count: int, random: np.random.Generator, side: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    labels = random.permutation(np.arange(count, dtype=np.int64) % len(CLASSES))
    images = np.empty((count, side, side, 3), dtype=np.uint8)
    step = max(1, CHUNK_IMAGES * 32**2 // side**2)
    for start in range(0, count, step):
        chunk = slice(start, start + step)
        images[chunk] = _gratings(labels[chunk], random, side)
    return images, labels


def _gratings(
    labels: NDArray[np.int64], random: np.random.Generator, side: int
) -> NDArray[np.uint8]:
    """Return one grating per label: uint8 [N, side, side, 3]."""
    count = len(labels)

    def uniform(low: float, high: float) -> NDArray[np.float32]:
        return random.uniform(low, high, (count, 1, 1)).astype(np.float32)

    degrees = np.asarray(ANGLES_DEGREES)[labels % len(ANGLES_DEGREES)]
    angle = np.deg2rad(random.normal(degrees, ANGLE_SPREAD_DEGREES)).astype(np.float32)
    angle = angle[:, None, None]
    cycles, phase = uniform(*CYCLES_PER_IMAGE), uniform(0, 2 * np.pi)
    y, x = np.mgrid[:side, :side].astype(np.float32) / side
    stripes = np.cos(2 * np.pi * cycles * (x * np.cos(angle) + y * np.sin(angle)) + phase)
    stripes *= uniform(*CONTRAST_LEVELS)

    pair = np.array(list(COLOUR_PAIRS.values()), dtype=np.float32)[labels // len(ANGLES_DEGREES)]
    tint = random.normal(0, TINT_LEVELS, (count, 3)).astype(np.float32)
    images = random.standard_normal((count, side, side, 3), dtype=np.float32)
    images *= NOISE_LEVELS
    images += 127.5 + tint[:, None, None, :]
    images += stripes[..., None] * pair[:, None, None, :]
    return np.clip(np.round(images, out=images), 0, 255, out=images).astype(np.uint8)
