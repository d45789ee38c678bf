"""Write the tables of a published study, as for a measured one, and its printed values."""

from pathlib import Path

from scaling.audit.derive import tables_of_published
from scaling.core import command_line
from scaling.published import study as published
from scaling.published.study import CIFAR10_TRAIN_IMAGES
from scaling.tables import schema


@command_line.script
def main(folder: Path, study: str, tables: Path, train_images: int = CIFAR10_TRAIN_IMAGES) -> None:
    (source,) = (found for found in published.read_folder(folder) if found.name == study)
    found = tables_of_published(source, train_images)
    schema.write_all(found, tables, study)
