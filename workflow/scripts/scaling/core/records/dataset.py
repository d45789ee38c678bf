"""Fields that describe images: the dataset of a measurement, and a prepared dataset."""

from typing import Annotated, Literal

from annotated_types import Len
from typing_extensions import TypedDict

from scaling.core.records.kind import Fraction, Kind, Positive, Row, Whole, closed

Channels = Annotated[list[Fraction], Len(3, 3)]
Shape = Annotated[list[Positive], Len(3, 3)]
"""Height, width and channels of an image."""


class Images(TypedDict):
    """The dataset that a measurement used: its source and the checksum of its images."""

    source: str
    checksum: str


class Dataset(Images):
    """The dataset with its numbers of images."""

    train_images: Positive
    test_images: Positive


class ShapedDataset(Dataset):
    """The dataset with the shape of its images."""

    image_shape: Shape


@closed
class Manifest(ShapedDataset):
    """The record of a dataset, `manifest.json`; counts are images per class."""

    origin: str
    classes: Annotated[list[str], Len(2)]
    train_counts: list[Whole]
    test_counts: list[Whole]
    mean: Channels
    std: Channels


class OwnData(TypedDict):
    """The data of a user's own command."""

    source: Literal["own"]


@closed
class OwnManifest(OwnData):
    """Its record."""

    origin: str


DATASET = Kind[Row]("a dataset", Manifest | OwnManifest)
