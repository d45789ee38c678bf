"""The interface of an engine: a trainer that trains one epoch at a time."""

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
    """The dataset, with the per-channel mean and deviation of its training images in [0, 1]."""

    data: ImageDataset
    mean: np.ndarray
    std: np.ndarray

    @classmethod
    def read(cls, images: Path, manifest: Path, train_images: int | None = None) -> "TrainingData":
        """Read images.npz and its manifest.json; keep only the first `train_images` of training."""
        described, data = DATASET.read(manifest), dataset.load(images)
        data = replace(
            data,
            train_images=data.train_images[:train_images],
            train_labels=data.train_labels[:train_images],
        )
        return cls(data, np.array(described["mean"]), np.array(described["std"]))

    def judged_by(self, images: int) -> "TrainingData":
        """Return data whose test images are that many training images, held out by class."""
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
"""Trains on a number of in-memory batches, so that loading has no effect on times."""


class Wrapped:
    """A `model` as a strategy wraps it for its GPUs."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    @property
    def bucket_bytes(self) -> list[int]:
        """Return the bytes of each gradient message of a step; empty without messages."""
        return []

    @property
    def sent_share(self) -> float:
        """Bytes that are sent for the gradients, as a share of the gradients' own."""
        return 1.0

    def without_communication(self) -> AbstractContextManager[None] | None:
        """Return a context that keeps gradients local (no_sync), or None if there is none."""
        return None

    def accumulate(self, more: bool) -> None:
        """Set whether `more` backward passes of the same update follow the next one."""

    def optimizer(self, options: dict[str, Any]) -> torch.optim.Optimizer:
        """Return SGD with its options."""
        return torch.optim.SGD(self.model.parameters(), **options)


class Trainer(Protocol):
    """A model in training on one rank. Constructed with (spec, rank, model, dataset)."""

    model: nn.Module
    """The model, wrapped for several GPUs."""

    applied: dict[str, Any]
    """The recipe's options as applied to this cell."""

    compiled_batch_sizes: list[int]
    """Batch sizes whose steps are compiled, if the options compile any; others run eagerly."""

    @property
    def progress(self) -> StepProgress | None:
        """Return the progress of captured steps, whose waits NCCL's watchdog does not see."""

    @property
    def bucket_bytes(self) -> list[int]:
        """Return the sizes of the gradient buckets of each step; empty on one process."""

    @property
    def sent_share(self) -> float:
        """Bytes that are sent for the gradients, as a share of the gradients' own."""

    def run_epoch(self, epoch: int) -> EpochResult:
        """Train epoch number `epoch` (from 1)."""

    def in_memory(self, limit: int) -> TrainIterations:
        """Load at most `limit` batches; return a function that trains on some of them."""

    def close(self) -> None:
        """Release what would keep the process group from being destroyed."""

    def without_communication(self) -> AbstractContextManager[None] | None:
        """Return a context that keeps gradients local (no_sync), or None if there is none."""


def finite(value: float) -> float | None:
    """Return the value, or None if JSON cannot represent it."""
    return value if np.isfinite(value) else None
