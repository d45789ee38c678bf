"""Train the tutorial CNN, the float network from which all quantized variants are made."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from scaling.core.environment import Device
from scaling.core.errors import UserError
from scaling.core.training_options import DataOptions, NetworkTraining
from scaling.data.batches import Images, predict, read_images
from scaling.models.tutorial_cnn import CLASSES, tutorial_cnn
from scaling.registry.update_rule import UpdateRule
from scaling.training.step import Batch, Step
from scaling.training.strategies import Wrapped
from scaling.training.trainer import finite


class TutorialTraining(DataOptions, NetworkTraining):
    """Trains the tutorial CNN by SGD with momentum and a constant learning rate.

    On a CPU with a fixed number of threads, equal seeds give equal weights, bit for bit.
    """

    seed: int
    """Seed of the initial weights and of the order of images."""
    output: Path
    """Path of the weights file to write."""
    summary: Path
    """Path of the JSON file to write, with a summary of the training."""
    device: Device = "auto"
    """Device to compute on; `auto` means CUDA if a GPU is visible."""

    def train(self, device: torch.device) -> tuple[nn.Sequential, dict[str, Any]]:
        """Return the network in evaluation mode, and a summary; UserError if training diverges."""
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

        def run_epoch() -> dict[str, Any]:
            step.reset()
            for chosen in torch.from_numpy(order.permutation(len(images))).split(self.batch_size):
                step.update(len(chosen), partial(_batch, images, chosen.numpy()))
            # Means over the epoch, while the weights moved.
            sums = {"train_loss": step.loss_sum, "train_accuracy": step.correct}
            return {name: finite(total.item() / len(images)) for name, total in sums.items()}

        epochs = []
        for epoch in range(1, self.epochs + 1):
            epochs.append({"epoch": epoch, **run_epoch()})
            if (loss := epochs[-1]["train_loss"]) is None:
                lower = f"lower --learning-rate, now {self.learning_rate}"
                raise UserError(f"training diverged in epoch {epoch}; {lower}")
            print(f"epoch {epoch}: training loss {loss:.4f}", flush=True)
        return network.eval(), {
            "training": self.model_dump(include={"seed", *NetworkTraining.model_fields}),
            "dataset": identity,
            "parameters": sum(each.numel() for each in network.parameters() if each.requires_grad),
            "epochs": epochs,
            "test_accuracy": float((predict(network, test) == test.labels).mean()),
        }


def _batch(images: Images, chosen: np.ndarray[Any, Any], size: int) -> Batch:
    return images.normalised(chosen), torch.from_numpy(images.labels[chosen]).to(images.device)
