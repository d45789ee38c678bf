"""The classes that networks pick for the test images: as a record keeps them, and compared.

Without torch, as the tables and the report read them too.
"""

import base64
import math
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Classes = np.ndarray[Any, np.dtype[np.uint8]]


def encode(classes: Classes) -> str:
    """`classes` [n] below 256 as base64 of their compressed bytes."""
    return base64.b64encode(zlib.compress(classes.astype(np.uint8).tobytes(), 9)).decode("ascii")


def decode(text: str) -> Classes:
    """What `encode` was given, uint8 [n]."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.uint8)


class MeanDifference(NamedTuple):
    """The mean over seeds of a difference of accuracies, in points, and its standard error."""

    points: float
    standard_error_points: float

    @property
    def errors(self) -> float:
        """How many standard errors the difference is, with its sign; 0 for no difference."""
        if self.points == 0:
            return 0.0
        error = self.standard_error_points
        return self.points / error if error > 0 else math.copysign(math.inf, self.points)


def mean_difference(
    labels: Classes, references: Sequence[Classes], picked: Sequence[Classes]
) -> MeanDifference:
    """Accuracy of `picked` minus that of the `references`, each the classes [n] of one seed, n ≥ 2.

    Seeds share their test images, so an image's differences are averaged over the seeds first: the
    standard error is that of the mean of these averages over the n images, for these seeds.
    """
    by_seed = [
        (ours == labels).astype(float) - (theirs == labels)
        for ours, theirs in zip(picked, references, strict=True)
    ]
    by_image = np.mean(by_seed, axis=0)
    error = float(by_image.std(ddof=1)) / math.sqrt(len(labels))
    return MeanDifference(100 * float(by_image.mean()), 100 * error)
