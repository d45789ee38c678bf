"""Prepare the study's dataset: one .npz file of arrays, and its manifest.

Only this step of a study needs internet access, and only for cifar10 without a path.
"""

from dataclasses import replace
from pathlib import Path

from scaling.core import command_line, files
from scaling.core.records.kind import DATASET
from scaling.data import dataset
from scaling.data.dataset import Request
from scaling.registry.entries import DATASETS


@command_line.script
def main(request: Request, output: Path, manifest: Path) -> None:
    """Write the requested images to `output` (.npz), and their record to `manifest`."""
    source = DATASETS.find(request.source)
    if source.name == "own":
        files.write_text(output, "")
        DATASET.write(manifest, {"source": "own", "origin": "data of the command's own"})
        return
    data, origin = source.read.load()(request)
    side = request.image_size
    if data.train_images.shape[1] != side:
        train, test = (dataset.resize(own, side) for own in (data.train_images, data.test_images))
        data = replace(data, train_images=train, test_images=test)
        origin += f"; resized to {side}x{side}"
    dataset.save(data, output)
    DATASET.write(manifest, dataset.manifest(data, source.name, origin))
