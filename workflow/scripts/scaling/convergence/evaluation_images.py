"""The test set on the device, normalised once, for an evaluation after each epoch."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from scaling.evaluation import normalized
from scaling.recipes.trainer import Material

BATCH_SIZE = 2000


class EvaluationImages:
    """All test images, float32 [n, 3, 32, 32], and their labels."""

    def __init__(self, material: Material, device: torch.device) -> None:
        images = normalized(material.data.test_images, material.mean, material.std)
        self._images = images.to(device)
        self._labels = torch.from_numpy(material.data.test_labels).to(device)

    @torch.no_grad()
    def evaluate(self, logits_of: Callable[[Tensor], Tensor]) -> tuple[float, float]:
        """Mean cross-entropy and share of right answers."""
        loss = torch.zeros((), device=self._labels.device)
        correct = torch.zeros((), device=self._labels.device, dtype=torch.long)
        for images, labels in zip(
            self._images.split(BATCH_SIZE), self._labels.split(BATCH_SIZE), strict=True
        ):
            logits = logits_of(images)
            loss += functional.cross_entropy(logits, labels, reduction="sum")
            correct += (logits.argmax(1) == labels).sum()
        return loss.item() / len(self._labels), correct.item() / len(self._labels)
