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
    """Return a comparison of the classes `picked` with the `reference`'s: [n] each, n ≥ 2.

    Agreement is of classes. `gained` images are right only here, `lost` ones only with the
    reference (McNemar 1947). The difference is that of `mean_difference`.
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
    """Return the mean difference of accuracies, `picked` minus `references`: [n] for each seed.

    It is in percentage points, with its standard error. Seeds share their test images: the error
    is that of the n images' means over these seeds.
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
