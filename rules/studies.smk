# The published studies below studies/. No rules here.
import re
from functools import cache

from scaling.published import study as published
from scaling.published.study import CIFAR10_TRAIN_IMAGES


def published_folders():
    """The folders below studies/ that hold published studies."""
    return sorted(
        str(path.parent) for path in Path(f"{OURS}studies").glob("*/timings.csv")
    )


@cache
def published_studies():
    """Each published study below studies/ by its name, with its folder; read when first needed."""
    with refused():
        return published.by_name(map(Path, published_folders()), reserved=STUDY)


def published_folder(wildcards):
    """The folder of a published study."""
    return published_studies()[wildcards.study][0]


def published_files():
    """Every file of the published studies."""
    folders = map(Path, published_folders())
    return [str(path) for folder in folders for path in sorted(folder.glob("*.*"))]


def published_sources(wildcards):
    """The files that hold the times and the printed figures of a published study."""
    folder = published_folder(wildcards)
    names = ("timings.csv", "batch_sweep.csv")
    return [str(folder / name) for name in names if (folder / name).exists()]


def compared(*tables):
    """These tables of all published studies."""
    return lambda wildcards: [
        f"{RESULTS}/tables/{study}/{table}.csv"
        for study in published_studies()
        for table in tables
    ]
