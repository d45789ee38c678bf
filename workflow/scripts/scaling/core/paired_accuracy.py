"""Compare the predictions of two networks on the same test images."""

import base64
import math
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Classes = np.ndarray[Any, Any]
"""The class of each image: integers [n]."""


class MeanDifference(NamedTuple):
    """The mean over seeds of a difference of accuracies, in points, and its standard error."""

    points: float
    standard_error_points: float

    @property
    def errors(self) -> float:
        """The difference divided by its standard error, with its sign; 0 for no difference."""
        if self.points == 0:
            return 0.0
        error = self.standard_error_points
        return self.points / error if error > 0 else math.copysign(math.inf, self.points)


def paired(labels: Classes, reference: Classes, picked: Classes) -> dict[str, float]:
    """Compare the predicted classes `picked` with those of the `reference`: [n] each, n ≥ 2.

    Points are percentage points of accuracy, theirs minus the reference's; agreement is of classes.
    `gained` images are right only here, `lost` ones only with the reference (McNemar 1947).
    """
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


def mean_difference(
    labels: Classes, references: Sequence[Classes], picked: Sequence[Classes]
) -> MeanDifference:
    """Return the mean accuracy difference of `picked` to `references`: [n] for each seed, n ≥ 2.

    Seeds share their test images: the error is that of the n images' means over these seeds.
    """
    pairs = zip(picked, references, strict=True)
    by_seed = [(ours == labels).astype(float) - (theirs == labels) for ours, theirs in pairs]
    by_image = np.mean(by_seed, axis=0)
    error = float(by_image.std(ddof=1)) / math.sqrt(len(labels))
    return MeanDifference(100 * float(by_image.mean()), 100 * error)


def encode(classes: Classes) -> str:
    """Encode `classes` (below 256) as base64 of their compressed bytes, for a record."""
    return base64.b64encode(zlib.compress(classes.astype(np.uint8).tobytes(), 9)).decode("ascii")


def decode(text: str) -> Classes:
    """Decode what `encode` wrote: uint8 [n], of at most ten million images."""
    found = zlib.decompressobj().decompress(base64.b64decode(text), 10_000_000)
    return np.frombuffer(found, dtype=np.uint8)
