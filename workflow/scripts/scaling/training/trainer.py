"""What an engine makes of a run: something that trains one epoch at a time."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from scaling.core.records.dataset import DATASET
from scaling.data import dataset
from scaling.data.dataset import ImageDataset
from scaling.launch.stall import StepProgress


@dataclass(frozen=True)
class TrainingData:
    """The dataset and the three channels' mean and deviation of its training images in [0, 1]."""

    data: ImageDataset
    mean: np.ndarray
    std: np.ndarray

    @classmethod
    def read(cls, images: Path, manifest: Path, train_images: int | None = None) -> "TrainingData":
        """Read images.npz and its manifest.json; only the first `train_images` of the training."""
        described, data = DATASET.read(manifest), dataset.load(images)
        data = replace(
            data,
            train_images=data.train_images[:train_images],
            train_labels=data.train_labels[:train_images],
        )
        return cls(data, np.array(described["mean"]), np.array(described["std"]))

    def judged_by(self, images: int) -> "TrainingData":
        """Hold out so many training images, an equal share of each class, as the test images."""
        data, there = self.data, len(self.data.train_labels)
        kept = np.ones(there, dtype=bool)
        by_class = np.argsort(data.train_labels, kind="stable")
        kept[by_class[np.arange(images) * there // images]] = False
        split = ImageDataset(
            *(data.train_images[kept], data.train_labels[kept]),
            *(data.train_images[~kept], data.train_labels[~kept]),
            data.classes,
        )
        return replace(self, data=split)


@dataclass(frozen=True)
class EpochResult:
    """One epoch of one rank; seconds are host seconds with the device idle at both ends.

    `train_loss` is null when it was not finite; `train_accuracy` is a fraction.
    """

    seconds: float
    loader_seconds: float
    iterations: int
    samples: int
    train_loss: float | None
    train_accuracy: float


TrainIterations = Callable[[int], EpochResult]
"""Trains on so many batches that are in memory, so that loading neither counts nor disturbs."""


class Wrapped:
    """A `model` as it is called on the GPUs it is spread over."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    @property
    def bucket_bytes(self) -> list[int]:
        """The bytes of each message of gradients in a step; empty where there is none."""
        return []

    @property
    def sent_share(self) -> float:
        """Bytes that are sent for the gradients, as a share of the gradients' own."""
        return 1.0

    def without_communication(self) -> AbstractContextManager[None] | None:
        """A context in which gradients stay local, or None where they cannot."""
        return None

    def accumulate(self, more: bool) -> None:
        """Say whether `more` backward passes of the same update follow the next one."""

    def optimizer(self, options: dict[str, Any]) -> torch.optim.Optimizer:
        """SGD, with its options."""
        return torch.optim.SGD(self.model.parameters(), **options)


class Trainer(Protocol):
    """A model under training on one rank. Made from (spec, rank, model, dataset)."""

    model: nn.Module
    """The model as it is called, wrapped for several GPUs."""

    applied: dict[str, Any]
    """The recipe's options as they could be applied to this cell."""

    compiled_batch_sizes: list[int]
    """The sizes of batches whose steps are compiled, as far as the recipe's options compile them.

    Those of others run as they come.
    """

    @property
    def progress(self) -> StepProgress | None:
        """How far its steps are, where they wait for other ranks unseen by the backend."""

    @property
    def bucket_bytes(self) -> list[int]:
        """The gradient buckets sent in each step; empty on one process."""

    @property
    def sent_share(self) -> float:
        """Bytes that are sent for the gradients, as a share of the gradients' own."""

    def run_epoch(self, epoch: int) -> EpochResult:
        """Train epoch number `epoch` (from 1)."""

    def in_memory(self, limit: int) -> TrainIterations:
        """Read at most `limit` batches and return how to train on the first of them, repeatedly."""

    def close(self) -> None:
        """Let go of what would keep the process group from ending."""

    def without_communication(self) -> AbstractContextManager[None] | None:
        """A context in which gradients stay local, or None where they cannot."""


def finite(value: float) -> float | None:
    """The value, or None where JSON has no word for it."""
    return value if np.isfinite(value) else None
