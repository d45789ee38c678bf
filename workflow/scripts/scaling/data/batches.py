"""Normalized batches of images, to train, calibrate and test quantized networks."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from scaling.core.errors import UserError
from scaling.core.paired_accuracy import Classes
from scaling.core.records.kind import DATASET
from scaling.data import dataset

EVALUATION_BATCH = 250


@dataclass(frozen=True)
class Images:
    """Images and labels of one split, with the constants that normalize the images.

    `pixels` is uint8 [n, 32, 32, 3], and `labels` is int64 [n]. `mean` and `std`, both [3], are
    statistics of the training images after scaling to [0, 1]. Batches are returned on `device`.
    """

    pixels: np.ndarray[Any, Any]
    labels: np.ndarray[Any, Any]
    mean: np.ndarray[Any, Any]
    std: np.ndarray[Any, Any]
    device: torch.device

    def __len__(self) -> int:
        return len(self.pixels)

    def normalised(self, index: np.ndarray[Any, Any] | slice) -> Tensor:
        """Return the images at `index` as (pixel / 255 - mean) / std: float32 [k, 3, 32, 32]."""
        pixels = torch.from_numpy(self.pixels[index]).to(self.device)
        scaled = pixels.permute(0, 3, 1, 2).contiguous().float() / 255
        shift_scale = torch.from_numpy(np.stack([self.mean, self.std])).float().to(self.device)
        mean, std = shift_scale.view(2, 1, 3, 1, 1)
        return (scaled - mean) / std

    def batches(self) -> Iterator[Tensor]:
        """Yield all images in order, as normalized batches of `EVALUATION_BATCH` images."""
        for start in range(0, len(self), EVALUATION_BATCH):
            yield self.normalised(slice(start, start + EVALUATION_BATCH))

    def checksum(self) -> str:
        """Return the SHA-256 of all pixels in the order of the images, as hexadecimal digits."""
        return hashlib.sha256(np.ascontiguousarray(self.pixels).data).hexdigest()

    def sample(self, count: int, seed: int) -> "Images":
        """Return `count` random images (0: all), in unchanged order; UserError if too many."""
        here = len(self)
        if not 0 <= count <= here:
            raise UserError(
                f"{count} images cannot be drawn from {here}; ask for 0 (all) to {here}"
            )
        index = np.sort(np.random.default_rng(seed).permutation(here)[: count or here])
        return replace(self, pixels=self.pixels[index], labels=self.labels[index])


def read_images(
    source: Path, manifest: Path, device: torch.device
) -> tuple[Images, Images, dict[str, str]]:
    """Return training images, test images, and the fields `source` and `checksum` of `manifest`."""
    data, described = dataset.read(source, manifest), DATASET.read(manifest)
    train = Images(data.train_images, data.train_labels, data.mean, data.std, device)
    test = Images(data.test_images, data.test_labels, data.mean, data.std, device)
    return train, test, {key: described[key] for key in ("source", "checksum")}


@torch.no_grad()
def predict(network: nn.Module, images: Images) -> Classes:
    """Return each image's class with the highest logit: int64 [n]. Ties go to the first class."""
    picked = [network(batch).argmax(dim=1).cpu().numpy() for batch in images.batches()]
    return np.concatenate(picked)
