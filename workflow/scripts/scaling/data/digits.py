"""scikit-learn's handwritten digits at CIFAR's size: real data without a download."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from scaling.data.dataset import ImageDataset, Request, resize

ORIGIN = "scikit-learn load_digits (1,797 handwritten digits of 8x8), enlarged to 32x32"
TEST_IMAGES = 297


def read(request: Request | None = None) -> tuple[ImageDataset, str]:
    """Return 1,500 training and 297 test images of the digits 0 to 9, the same at every call.

    The 17 grey levels are scaled to 0 to 255, enlarged bilinearly, and repeated in three equal
    channels. The split is stratified.
    """
    digits = load_digits()
    grey = np.round(digits.images * (255 / 16)).astype(np.uint8)
    train_images, test_images, train_labels, test_labels = train_test_split(
        resize(np.repeat(grey[..., None], 3, axis=3), 32),
        digits.target.astype(np.int64),
        test_size=TEST_IMAGES,
        stratify=digits.target,
        random_state=0,
    )
    classes = [str(digit) for digit in range(10)]
    return ImageDataset(train_images, train_labels, test_images, test_labels, classes), ORIGIN
