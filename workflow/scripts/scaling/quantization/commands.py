"""The options of quantize_train.py and quantize_evaluate.py for all models."""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from scaling.core import command_line
from scaling.core.environment import Device
from scaling.core.errors import UserError
from scaling.core.training_options import DataOptions
from scaling.data.batches import Images
from scaling.registry.model import QUANTIZED_MODELS

DEFAULT = "tutorial-cnn"


class Command(DataOptions):
    """One network of Part B, on one device."""

    seed: int
    """Of the first weights, the order of the images and the choice of calibration images."""
    output: Path
    """What to write."""
    model: str = DEFAULT
    """What is quantized; it decides which options there are."""
    device: Device = "auto"
    """Where to compute; `auto` means CUDA where there is a GPU."""


class Training(Command):
    """A training whose weights go to `output`."""

    summary: Path
    """The JSON file to write on how it went."""

    def train(self, device: torch.device) -> tuple[nn.Module, dict[str, Any]]:
        """Train a fresh network; returns it in evaluation mode, and the summary."""
        raise NotImplementedError


class Evaluation(Command):
    """A quantization of trained weights, and its measurement."""

    weights: Path
    """What quantize_train.py wrote for this model and seed."""
    calibration_images: int
    """Training images to calibrate on, 0 for all."""

    def evaluate(
        self, device: torch.device, chosen: Images, test: Images
    ) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Quantize with the `chosen` training images; yield each record's path and what it says."""
        raise NotImplementedError


Epoch = dict[str, Any]


def train_epochs(epochs: int, rate: float, run_epoch: Callable[[int], Epoch]) -> list[Epoch]:
    """Run all epochs, from 1; return what each says. UserError for a loss that is not finite."""
    found = []
    for epoch in range(1, epochs + 1):
        found.append({"epoch": epoch, **run_epoch(epoch)})
        if (loss := found[-1]["train_loss"]) is None:
            said = f"training diverged in epoch {epoch}"
            raise UserError(f"{said}; lower --learning-rate, now {rate}")
        print(f"epoch {epoch}: training loss {loss:.4f}", flush=True)
    return found


def parse(part: Literal["training", "evaluation"], argv: list[str] | None) -> Any:
    """Read the command line of the model that --model names."""
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--model", default=DEFAULT, choices=QUANTIZED_MODELS)
    model = QUANTIZED_MODELS[first.parse_known_args(argv)[0].model]
    return command_line.parse(model[part].load(), argv)
