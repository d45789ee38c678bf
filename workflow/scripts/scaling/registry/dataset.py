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


DATASETS = Registry[Dataset]("dataset", "scaling.registry.datasets", Dataset)
