"""The options of quantize_train.py and quantize_evaluate.py for all models."""

import argparse
from collections.abc import Iterator
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


def diverged(epoch: int, learning_rate: float) -> UserError:
    """Make the error of a loss that is not finite."""
    return UserError(
        f"training diverged in epoch {epoch}; lower --learning-rate, now {learning_rate}"
    )


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


def parse(part: Literal["training", "evaluation"], argv: list[str] | None) -> Any:
    """Read the command line of the model that --model names; UserError for an unknown one."""
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--model", default=DEFAULT)
    model = QUANTIZED_MODELS.find(first.parse_known_args(argv)[0].model)
    return command_line.parse(getattr(model, part).load(), argv)
