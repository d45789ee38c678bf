"""Trains the tutorial CNN that every quantization stage is made from."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from scaling.core.errors import UserError
from scaling.core.paired_accuracy import Classes
from scaling.data.batches import Images, read_images
from scaling.models.tutorial_cnn import CLASSES, tutorial_cnn
from scaling.quantization.calibration import layers
from scaling.quantization.commands import Training, diverged


@dataclass(frozen=True, kw_only=True)
class TutorialTraining(Training):
    """Train the tutorial CNN by SGD with momentum and a constant learning rate.

    On the CPU with a fixed number of threads the same seed gives the same weights, bit for bit.
    """

    learning_rate: float
    """Of SGD, constant."""
    momentum: float
    """Of SGD, 0 for none."""
    biases: Literal["all", "last", "none"] = "all"
    """The layers with a bias; all others hold zeros for theirs."""

    def train(self, device: torch.device) -> tuple[nn.Sequential, dict[str, Any]]:
        images, test, identity = read_images(self.dataset, self.manifest, device)
        if images.labels.max() >= CLASSES:
            raise UserError(
                f"the dataset has {images.labels.max() + 1} classes, the tutorial CNN tells "
                f"{CLASSES} apart; choose a dataset of at most {CLASSES}"
            )
        torch.manual_seed(self.seed)
        network = tutorial_cnn().to(device)
        without = {"all": 0, "last": -1, "none": None}[self.biases]
        for layer in [*layers(network).values()][:without]:
            assert layer.bias is not None
            nn.init.zeros_(layer.bias).requires_grad_(False)
        optimizer = torch.optim.SGD(
            network.parameters(), lr=self.learning_rate, momentum=self.momentum
        )
        order = np.random.default_rng(self.seed)
        epochs = []
        for epoch in range(1, self.epochs + 1):
            loss_sum, right = 0.0, 0
            shuffled = order.permutation(len(images))
            for start in range(0, len(images), self.batch_size):
                chosen = shuffled[start : start + self.batch_size]
                target = torch.from_numpy(images.labels[chosen]).to(device)
                logits = network(images.normalised(chosen))
                loss = functional.cross_entropy(logits, target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                loss_sum += loss.item() * len(chosen)
                right += int((logits.argmax(dim=1) == target).sum())
            # Means over the epoch, while the weights moved.
            mean_loss, accuracy = loss_sum / len(images), right / len(images)
            if not np.isfinite(mean_loss):
                raise diverged(epoch, self.learning_rate)
            epochs.append({"epoch": epoch, "train_loss": mean_loss, "train_accuracy": accuracy})
            print(f"epoch {epoch}: training loss {mean_loss:.4f}, accuracy {accuracy:.2%}")
        network.eval()
        right = int((predict(network, test) == test.labels).sum())
        options = ("seed", "epochs", "batch_size", "learning_rate", "momentum", "biases")
        return network, {
            "training": {key: getattr(self, key) for key in options},
            "dataset": identity,
            "parameters": sum(each.numel() for each in network.parameters() if each.requires_grad),
            "train_images": len(images),
            "test_images": len(test),
            "epochs": epochs,
            "test_accuracy": right / len(test),
        }


@torch.no_grad()
def predict(network: nn.Module, images: Images) -> Classes:
    """Pick the class of each image: int64 [n].

    Of equal logits the first wins; integer logits do tie now and then.
    """
    picked = [network(batch).argmax(dim=1).cpu().numpy() for batch in images.batches()]
    return np.concatenate(picked)
