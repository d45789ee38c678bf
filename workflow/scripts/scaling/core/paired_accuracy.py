"""Compare the predictions of two networks on the same test images."""

import base64
import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

Classes = np.ndarray[Any, Any]
"""Class index of each image: an integer array [n]."""


def paired(labels: Classes, reference: Classes, picked: Classes) -> dict[str, float]:
    """Return the accuracy of predictions `picked`, and how they differ from `reference`.

    All arguments are class indexes [n], n ≥ 2. In the result, `agreement_percent` is the percentage
    of images for which both predictions are equal. `gained` counts images that only `picked` has
    right, and `lost` those that only `reference` has right (McNemar 1947).
    """
    right, was_right = picked == labels, reference == labels
    return {
        "accuracy_percent": 100 * int(right.sum()) / len(labels),
        **mean_difference(labels, [reference], [picked]),
        "agreement_percent": 100 * int((picked == reference).sum()) / len(labels),
        "gained": int((right & ~was_right).sum()),
        "lost": int((was_right & ~right).sum()),
        "test_images": len(labels),
    }


def mean_difference(
    labels: Classes, references: Sequence[Classes], picked: Sequence[Classes]
) -> dict[str, float]:
    """Return the accuracy of `picked` minus that of `references`, and the standard error.

    `picked` and `references` are predicted classes, one array [n] per seed. `labels` [n] are the
    correct classes. Both results are in percentage points. As all seeds test the same images, each
    image's difference is first averaged over seeds. Mean and standard error are over images.
    """
    pairs = zip(picked, references, strict=True)
    by_seed = [(ours == labels).astype(float) - (theirs == labels) for ours, theirs in pairs]
    by_image = np.mean(by_seed, axis=0)
    return {
        "difference_points": 100 * float(by_image.sum()) / len(labels),
        "standard_error_points": 100 * float(by_image.std(ddof=1)) / math.sqrt(len(labels)),
    }


def encode(classes: Classes) -> str:
    """Return `classes` (0 to 255) as text for a record: one byte each, compressed, in base64."""
    return base64.b64encode(zlib.compress(classes.astype(np.uint8).tobytes(), 9)).decode("ascii")


def decode(text: str) -> Classes:
    """Return the classes that `encode` wrote as `text`: uint8 [n], n ≤ ten million."""
    content = zlib.decompressobj().decompress(base64.b64decode(text), 10_000_000)
    return np.frombuffer(content, dtype=np.uint8)
