"""Datasets: sources of images that the study trains on."""

from dataclasses import dataclass

from scaling.registry.registry import Reference, Registry


@dataclass(frozen=True)
class Dataset:
    """What the study has to know of a source of images.

    `fetch` refers to a function from (path or None, `scaling.data.dataset.Download`) to where the
    images lie (None: nowhere) and their origin in words; `read` to one from (that path,
    `scaling.data.dataset.MadeUp`) to an `ImageDataset` and what to add to the origin. A source that
    `takes_path` can be told where its files lie, and has to be unless it `downloads` them.
    `options` are keys of the section dataset that only this source reads.
    """

    name: str
    fetch: Reference
    read: Reference
    takes_path: bool = False
    downloads: bool = False
    options: tuple[str, ...] = ()


DATASETS = Registry[Dataset]("dataset", "scaling.registry.datasets")
