"""Datasets: sources of images that the study trains on."""

from dataclasses import dataclass

from scaling.registry.registry import Reference, Registry


@dataclass(frozen=True)
class Dataset:
    """A source of images.

    `read` refers to a function from a `scaling.data.dataset.Request` to an `ImageDataset` and a
    description of its origin. `options` are the keys of the section dataset that this source reads;
    with `needs_path` it requires a path.
    """

    name: str
    read: Reference
    options: tuple[str, ...] = ()
    needs_path: bool = False


SYNTHETIC = Dataset(
    name="synthetic",
    read=Reference("scaling.data.synthetic:read"),
    options=("train_images", "test_images", "seed"),
)
DATASETS = Registry[Dataset](
    "dataset",
    Dataset,
    Dataset(
        name="cifar10",
        read=Reference("scaling.data.cifar10:read"),
        options=("path", "mirror_url", "download_attempts"),
    ),
    Dataset(name="digits", read=Reference("scaling.data.digits:read")),
    Dataset(
        name="images",
        read=Reference("scaling.data.images:read"),
        options=("path",),
        needs_path=True,
    ),
    SYNTHETIC,
    # Of a user's own command: nothing is prepared.
    Dataset(name="own", read=Reference("scaling.launch.own_trainer:run")),
)
