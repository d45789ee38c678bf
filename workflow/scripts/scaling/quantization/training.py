"""Train the tutorial CNN, the float network from which all quantized variants are made."""

import math
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


class TutorialTraining(DataOptions, NetworkTraining):
    """Trains the tutorial CNN by SGD with momentum and a constant learning rate.

    On a CPU with a fixed number of threads, equal seeds give equal weights, bit for bit.
    """

    seed: int
    """Seed of the initial weights and of the order of images."""
    output: Path
    """Path of the weights file to write."""
    device: Device = "auto"
    """Device to compute on; `auto` means CUDA if a GPU is visible."""

    def train(self, device: torch.device) -> nn.Sequential:
        """Return the network in evaluation mode; UserError if training diverges."""
        images, test, _ = read_images(self.dataset, self.manifest, device)
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
        for epoch in range(1, self.epochs + 1):
            step.reset()
            for chosen in torch.from_numpy(order.permutation(len(images))).split(self.batch_size):
                step.update(len(chosen), partial(_batch, images, chosen.numpy()))
            # Mean over the epoch, while the weights moved.
            loss = step.loss_sum.item() / len(images)
            if not math.isfinite(loss):
                lower = f"lower --learning-rate, now {self.learning_rate}"
                raise UserError(f"training diverged in epoch {epoch}; {lower}")
            print(f"epoch {epoch}: training loss {loss:.4f}", flush=True)
        network.eval()
        print(f"test accuracy {(predict(network, test) == test.labels).mean():.4f}")
        return network


def _batch(images: Images, chosen: np.ndarray[Any, Any], size: int) -> Batch:
    return images.normalised(chosen), torch.from_numpy(images.labels[chosen]).to(images.device)
