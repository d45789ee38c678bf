"""Training of the tutorial CNN, and its predictions."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from scaling.core.errors import UserError
from scaling.core.paired_accuracy import Classes
from scaling.data.batches import Images
from scaling.models.tutorial_cnn import CLASSES, tutorial_cnn


@dataclass(frozen=True)
class EpochResult:
    """One epoch as it went: mean loss and share of right predictions while the weights moved."""

    epoch: int
    train_loss: float
    train_accuracy: float


def pick_device(name: str) -> torch.device:
    """The device `name` (auto, cpu or cuda) stands for; auto is CUDA where there is one."""
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise UserError("--device cuda: this machine has no CUDA device; use --device cpu or auto")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


def train(
    images: Images,
    *,
    seed: int,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    momentum: float,
    report: Callable[[EpochResult], None],
) -> tuple[nn.Sequential, list[EpochResult]]:
    """Train a fresh tutorial CNN by SGD with momentum; `report` sees each epoch as it ends.

    `seed` decides the first weights and the order of the images, so that on the CPU with a fixed
    number of threads the same seed gives the same weights, bit for bit. Raises UserError for
    unusable parameters and when the loss stops being finite.
    """
    if epochs < 1 or batch_size < 1 or seed < 0:
        raise UserError(
            f"cannot train for {epochs} epochs of batches of {batch_size} with seed {seed}; give "
            "--epochs and --batch-size of at least 1 and --seed of at least 0"
        )
    if images.labels.max() >= CLASSES:
        raise UserError(
            f"the dataset has {images.labels.max() + 1} classes, the tutorial CNN tells "
            f"{CLASSES} apart; choose a dataset of at most {CLASSES}"
        )
    torch.manual_seed(seed)
    network = tutorial_cnn().to(images.device)
    optimizer = torch.optim.SGD(network.parameters(), lr=learning_rate, momentum=momentum)
    order = np.random.default_rng(seed)
    labels = torch.from_numpy(images.labels).to(images.device)
    results = []
    for epoch in range(1, epochs + 1):
        loss_sum, right = 0.0, 0
        shuffled = order.permutation(len(images))
        for start in range(0, len(images), batch_size):
            chosen = shuffled[start : start + batch_size]
            target = labels[torch.from_numpy(chosen).to(images.device)]
            logits = network(images.normalised(chosen))
            loss = functional.cross_entropy(logits, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss_sum += loss.item() * len(chosen)
            right += int((logits.argmax(dim=1) == target).sum())
        if not np.isfinite(loss_sum):
            raise UserError(
                f"training diverged in epoch {epoch} (the loss is {loss_sum}); "
                f"lower --learning-rate, now {learning_rate}"
            )
        results.append(EpochResult(epoch, loss_sum / len(images), right / len(images)))
        report(results[-1])
    return network.eval(), results


@torch.no_grad()
def predict(network: nn.Module, images: Images) -> Classes:
    """Pick the class of each image: int64 [n].

    Of equal logits the first wins; integer logits do tie now and then.
    """
    return np.concatenate(
        [network(batch).argmax(dim=1).cpu().numpy() for batch in images.batches()]
    )
