"""Two networks on the same test images: the difference of their accuracies, and its error."""

import math
from typing import TypedDict

from torch import Tensor


class PairedAccuracy(TypedDict):
    """A network beside a reference, on the same images.

    `difference_points` is its accuracy minus the reference's, in percentage points, and
    `standard_error_points` that of the mean of d = right - right of the reference (-1, 0 or 1) over
    the images; `agreement_percent` the share of images that both put in the same class. `gained`
    images are right only here, `lost` ones only with the reference (McNemar 1947).
    """

    accuracy_percent: float
    difference_points: float
    standard_error_points: float
    agreement_percent: float
    gained: int
    lost: int
    test_images: int


def paired(labels: Tensor, reference: Tensor, picked: Tensor) -> PairedAccuracy:
    """Compare the classes `picked` with those of the `reference`: int64 [n] each, n ≥ 2."""
    images = len(labels)
    right, was_right = picked == labels, reference == labels
    gained, lost = int((right & ~was_right).sum()), int((was_right & ~right).sum())
    mean = (gained - lost) / images
    variance = ((gained + lost) / images - mean**2) * images / (images - 1)
    return {
        "accuracy_percent": 100 * int(right.sum()) / images,
        "difference_points": 100 * (gained - lost) / images,
        "standard_error_points": 100 * math.sqrt(variance / images),
        "agreement_percent": 100 * int((picked == reference).sum()) / images,
        "gained": gained,
        "lost": lost,
        "test_images": images,
    }
