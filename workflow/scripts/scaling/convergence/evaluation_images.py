"""The test set on the device, normalised once, for an evaluation after each epoch."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from scaling.training.evaluation import normalized
from scaling.training.trainer import TrainingData

BATCH_SIZE = 2000
"""The most images of an evaluation's batch."""


class Quality(NamedTuple):
    """Mean cross-entropy, and the share of right answers."""

    loss: float
    accuracy: float


class EvaluationImages:
    """All test images, float32 [n, 3, 32, 32], and their labels."""

    def __init__(self, material: TrainingData, device: torch.device) -> None:
        images = normalized(material.data.test_images, material.mean, material.std)
        self._images = images.to(device)
        self._labels = torch.from_numpy(material.data.test_labels).to(device)

    @torch.no_grad()
    def evaluate(self, logits_of: Callable[[Tensor], Tensor]) -> Quality:
        """All images, in batches of equal size but for the last."""
        batches = math.ceil(len(self._labels) / BATCH_SIZE)
        loss = torch.zeros((), device=self._labels.device)
        correct = torch.zeros((), device=self._labels.device, dtype=torch.long)
        for images, labels in zip(
            self._images.chunk(batches), self._labels.chunk(batches), strict=True
        ):
            logits = logits_of(images)
            loss += functional.cross_entropy(logits, labels, reduction="sum")
            correct += (logits.argmax(1) == labels).sum()
        return Quality(loss.item() / len(self._labels), correct.item() / len(self._labels))
