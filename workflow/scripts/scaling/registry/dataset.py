"""Datasets: sources of images that the study trains on."""

from dataclasses import dataclass

from scaling.registry.registry import Reference, Registry


@dataclass(frozen=True)
class Dataset:
    """A source of images."""

    name: str
    read: Reference
    """A function from a `scaling.data.dataset.Request` to an `ImageDataset` and its origin."""
    options: tuple[str, ...] = ()
    """The keys of the section dataset that it reads."""
    needs_path: bool = False


CIFAR10 = Dataset(
    name="cifar10",
    read=Reference("scaling.data.cifar10:read"),
    options=("path", "mirror_url", "download_attempts"),
)
DIGITS = Dataset(name="digits", read=Reference("scaling.data.generated:digits"))
IMAGES = Dataset("images", Reference("scaling.data.images:read"), ("path",), needs_path=True)
SYNTHETIC = Dataset(
    name="synthetic",
    read=Reference("scaling.data.generated:synthetic"),
    options=("train_images", "test_images", "seed"),
)
OWN = Dataset(name="own", read=Reference("scaling.launch.own_trainer:run"))
"""Of a user's own command: nothing is prepared."""
DATASETS = Registry[Dataset]("dataset", Dataset, CIFAR10, DIGITS, IMAGES, SYNTHETIC, OWN)
