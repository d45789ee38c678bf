"""The record of a prepared dataset, beside its images."""

from collections.abc import Iterator
from typing import Annotated

from annotated_types import Len
from typing_extensions import TypedDict

from scaling.core.records.fields import Fraction, Positive, Row, Whole, closed
from scaling.core.records.kind import Kind

Channels = Annotated[list[Fraction], Len(3, 3)]


@closed
class Manifest(TypedDict):
    """The record of a dataset, `manifest.json`: `data.dataset.manifest` says what its fields are.

    Counts are images of each class; `image_shape` is pixels, pixels, channels.
    """

    source: str
    origin: str
    checksum: str
    train_images: Positive
    test_images: Positive
    classes: Annotated[list[str], Len(2)]
    image_shape: Annotated[list[Positive], Len(3, 3)]
    train_counts: list[Whole]
    test_counts: list[Whole]
    mean: Channels
    std: Channels


def _contradictions(manifest: Row) -> Iterator[str]:
    """Yield what cannot be true of images with these classes and channels."""
    classes = manifest["classes"]
    if len(set(classes)) < len(classes):
        yield "classes: two have the same name"
    height, width, channels = manifest["image_shape"]
    if height != width or channels != 3:
        yield f"image_shape: {height} x {width} x {channels} is no square of three channels"
    for part in ("train", "test"):
        counts = manifest[f"{part}_counts"]
        if len(counts) != len(classes) or sum(counts) != manifest[f"{part}_images"]:
            yield f"{part}_counts: not a number for each class that add up to {part}_images"


DATASET = Kind[Row]("a dataset", Manifest, _contradictions)
