"""Trains the tutorial CNN that every quantization stage is made from."""

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from scaling.core.errors import UserError
from scaling.core.training_options import NetworkTraining
from scaling.data.batches import Images, predict, read_images
from scaling.models.tutorial_cnn import CLASSES, tutorial_cnn
from scaling.quantization.commands import Training, train_epochs
from scaling.registry.update_rule import UpdateRule
from scaling.training.step import Batch, Step
from scaling.training.trainer import finite
from scaling.training.wrapped import Wrapped


class TutorialTraining(Training, NetworkTraining):
    """Train the tutorial CNN by SGD with momentum and a constant learning rate.

    On the CPU with a fixed number of threads the same seed gives the same weights, bit for bit.
    """

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
        for layer in [one for one in network if isinstance(one, nn.Conv2d | nn.Linear)][:without]:
            assert layer.bias is not None
            nn.init.zeros_(layer.bias).requires_grad_(False)
        replica = Wrapped(network)
        replica.start({"lr": self.learning_rate, "momentum": self.momentum}, UpdateRule())
        step = Step(network, replica, device, 1, UpdateRule())
        order = np.random.default_rng(self.seed)

        def run_epoch(_: int) -> dict[str, Any]:
            step.reset()
            for chosen in torch.from_numpy(order.permutation(len(images))).split(self.batch_size):
                step.update(len(chosen), partial(_batch, images, chosen.numpy()))
            # Means over the epoch, while the weights moved.
            sums = {"train_loss": step.loss_sum, "train_accuracy": step.correct}
            return {name: finite(total.item() / len(images)) for name, total in sums.items()}

        epochs = train_epochs(self.epochs, self.learning_rate, run_epoch)
        return network.eval(), {
            "training": self.model_dump(include={"seed", *NetworkTraining.model_fields}),
            "dataset": identity,
            "parameters": sum(each.numel() for each in network.parameters() if each.requires_grad),
            "epochs": epochs,
            "test_accuracy": float((predict(network, test) == test.labels).mean()),
        }


def _batch(images: Images, chosen: np.ndarray[Any, Any], size: int) -> Batch:
    return images.normalised(chosen), torch.from_numpy(images.labels[chosen]).to(images.device)
