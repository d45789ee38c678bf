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


SYNTHETIC = Dataset(
    "synthetic",
    Reference("scaling.data.generated:synthetic"),
    ("train_images", "test_images", "seed"),
)
DATASETS = Registry[Dataset](
    "dataset",
    Dataset,
    Dataset(
        "cifar10",
        Reference("scaling.data.cifar10:read"),
        ("path", "mirror_url", "download_attempts"),
    ),
    Dataset("digits", Reference("scaling.data.generated:digits")),
    Dataset("images", Reference("scaling.data.images:read"), ("path",), needs_path=True),
    SYNTHETIC,
    # Of a user's own command: nothing is prepared.
    Dataset("own", Reference("scaling.launch.own_trainer:run")),
)
