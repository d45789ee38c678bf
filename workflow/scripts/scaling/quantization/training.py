"""Train the tutorial CNN, the float network from which all quantized variants are made."""

import math
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim import SGD

from scaling.core.environment import Device
from scaling.core.errors import UserError
from scaling.core.training_options import DataOptions, NetworkTraining
from scaling.data.batches import predict, read_images
from scaling.models.tutorial_cnn import CLASSES, tutorial_cnn


class TutorialTraining(DataOptions, NetworkTraining):
    """Options of a training of the tutorial CNN by SGD, with momentum and a constant learning rate.

    On a CPU with a fixed number of threads, equal seeds give equal weights, bit for bit.
    """

    seed: int
    """Seed of the initial weights and of the order of images."""
    output: Path
    """Path of the weights file to write."""
    device: Device = "auto"
    """Device to compute on; `auto` means CUDA if a GPU is visible."""

    def train(self, device: torch.device) -> nn.Sequential:
        """Return the trained network in evaluation mode; UserError if training diverges."""
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
        optimizer = SGD(network.parameters(), lr=self.learning_rate, momentum=self.momentum)
        order = np.random.default_rng(self.seed)
        labels, total = torch.from_numpy(images.labels).to(device), torch.zeros((), device=device)
        for epoch in range(1, self.epochs + 1):
            total.zero_()
            for chosen in torch.from_numpy(order.permutation(len(images))).split(self.batch_size):
                logits = network(images.normalised(chosen.numpy()))
                losses = cross_entropy(logits, labels[chosen.to(device)], reduction="none")
                optimizer.zero_grad()
                losses.mean().backward()
                optimizer.step()
                total += losses.detach().sum()
            # Mean over the epoch, while the weights moved.
            loss = total.item() / len(images)
            if not math.isfinite(loss):
                lower = f"lower --learning-rate, now {self.learning_rate}"
                raise UserError(f"training diverged in epoch {epoch}; {lower}")
            print(f"epoch {epoch}: training loss {loss:.4f}", flush=True)
        network.eval()
        print(f"test accuracy {(predict(network, test) == test.labels).mean():.4f}")
        return network
