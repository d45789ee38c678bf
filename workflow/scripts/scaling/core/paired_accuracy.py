"""Compare the predictions of two networks on the same test images."""

import base64
import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

Classes = np.ndarray[Any, Any]
"""The class of each image: integers [n]."""


def paired(labels: Classes, reference: Classes, picked: Classes) -> dict[str, float]:
    """Compare predicted classes `picked` with classes of a `reference` network: [n] each, n ≥ 2.

    Agreement is the percentage of equal classes. `gained` counts images that only `picked` has
    right, `lost` those that only the reference has right (McNemar 1947).
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

    Both hold predicted classes [n] per seed; `labels` [n] are true. Units: percentage points. Seeds
    share images, so the error is over images, each averaged over seeds.
    """
    pairs = zip(picked, references, strict=True)
    by_seed = [(ours == labels).astype(float) - (theirs == labels) for ours, theirs in pairs]
    by_image = np.mean(by_seed, axis=0)
    return {
        "difference_points": 100 * float(by_image.sum()) / len(labels),
        "standard_error_points": 100 * float(by_image.std(ddof=1)) / math.sqrt(len(labels)),
    }


def encode(classes: Classes) -> str:
    """Return `classes` (below 256) as base64 of their compressed bytes, for a record."""
    return base64.b64encode(zlib.compress(classes.astype(np.uint8).tobytes(), 9)).decode("ascii")


def decode(text: str) -> Classes:
    """Return the classes that `encode` wrote: uint8 [n], n at most ten million."""
    content = zlib.decompressobj().decompress(base64.b64decode(text), 10_000_000)
    return np.frombuffer(content, dtype=np.uint8)
