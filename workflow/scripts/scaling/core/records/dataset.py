"""The record of a prepared dataset, beside its images."""

from collections.abc import Iterator

from scaling.core.records.kind import Kind, Row


def _contradictions(manifest: Row) -> Iterator[str]:
    """What cannot be true of images with these classes and channels."""
    classes = manifest["classes"]
    named = isinstance(classes, list) and all(isinstance(name, str) for name in classes)
    if not named or len(set(classes)) < 2:
        yield "classes: two or more different names are needed"
    height, width, channels = manifest["image_shape"]
    if not height == width > 0 or channels != 3:
        yield f"image_shape: {height} x {width} x {channels} is no square of three channels"
    for name in ("mean", "std"):
        if not (len(manifest[name]) == 3 and all(0 <= value <= 1 for value in manifest[name])):
            yield f"{name}: three numbers from 0 to 1 are needed"
    for part in ("train", "test"):
        counts = manifest[f"{part}_counts"]
        if len(counts) != len(classes) or sum(counts) != manifest[f"{part}_images"]:
            yield f"{part}_counts: not a number for each class that add up to {part}_images"


DATASET = Kind[Row](
    "a dataset",
    {"": "source origin checksum train_images test_images train_counts test_counts"},
    contradictions=_contradictions,
)
