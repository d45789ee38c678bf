"""Make the study's dataset from an image source: one .npz of arrays, and its manifest.

The only step of the study that needs a network, and only for cifar10 without --path.
"""

from dataclasses import replace
from pathlib import Path

from scaling.core import command_line, files
from scaling.core.errors import program
from scaling.core.records.kind import DATASET
from scaling.data import dataset
from scaling.registry.entries import DATASETS


class Command(dataset.Request):
    """Which images to read, and where to write them."""

    output: Path
    """.npz file to write."""
    manifest: Path
    """JSON file to write."""


@program
def main(argv: list[str] | None = None) -> None:
    command = command_line.parse(Command, argv)
    source = DATASETS.find(command.source)
    if source.name == "own":
        files.write_text(command.output, "")
        DATASET.write(command.manifest, {"source": "own", "origin": "data of the command's own"})
        return
    data, origin = source.read.load()(command)
    side = command.image_size
    if data.train_images.shape[1] != side:
        train, test = (dataset.resize(own, side) for own in (data.train_images, data.test_images))
        data = replace(data, train_images=train, test_images=test)
        origin += f"; resized to {side}x{side}"
    dataset.save(data, command.output)
    DATASET.write(command.manifest, dataset.manifest(data, source.name, origin))
