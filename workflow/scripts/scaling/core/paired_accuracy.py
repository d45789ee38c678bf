"""Compare the predictions of two networks on the same test images."""

import base64
import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

Classes = np.ndarray[Any, Any]
"""Class index of each image: integers of shape [n]."""


def paired(labels: Classes, reference: Classes, picked: Classes) -> dict[str, float]:
    """Return the accuracy of classes `picked`, compared with those of a `reference` network.

    All arguments are classes [n], n ≥ 2. `agreement_percent` is of images with equal classes.
    `gained` counts images that only `picked` classifies correctly, `lost` those that only
    `reference` classifies correctly (McNemar 1947).
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
    """Return `difference_points`, accuracy of `picked` less `references`, and its standard error.

    Both are lists of classes [n], one per seed; `labels` [n] are the correct classes. Results are
    percentage points. The error is over images, averaged over seeds, as all seeds share the images.
    """
    pairs = zip(picked, references, strict=True)
    by_seed = [(ours == labels).astype(float) - (theirs == labels) for ours, theirs in pairs]
    by_image = np.mean(by_seed, axis=0)
    return {
        "difference_points": 100 * float(by_image.sum()) / len(labels),
        "standard_error_points": 100 * float(by_image.std(ddof=1)) / math.sqrt(len(labels)),
    }


def encode(classes: Classes) -> str:
    """Return `classes` (0 to 255) as text for a record: bytes, compressed, in base64."""
    return base64.b64encode(zlib.compress(classes.astype(np.uint8).tobytes(), 9)).decode("ascii")


def decode(text: str) -> Classes:
    """Return the classes in a text that `encode` wrote: uint8 [n], n ≤ ten million."""
    content = zlib.decompressobj().decompress(base64.b64decode(text), 10_000_000)
    return np.frombuffer(content, dtype=np.uint8)
