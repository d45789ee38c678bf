"""Check that a study's model can be built, and trains on images of the study's size."""

from pathlib import Path
from typing import Any

import torch

from scaling.config import config as configuration
from scaling.core import numbers as fmt
from scaling.core.errors import UserError
from scaling.core.records.dataset import DATASET
from scaling.core.training_options import ModelOptions
from scaling.models.build import LEAST_BATCH, build

CLASSES = 10
"""Number of classes of an unprepared dataset: all but the user's images have ten."""


def check(config: dict[str, Any], manifest: Path) -> None:
    """Run a training step of the model on the meta device, with the smallest batch of the study.

    A model that depends on values runs on the CPU. Raises UserError if it cannot be built or run,
    or does not return logits [images, classes].
    """
    options = ModelOptions(**configuration.model_options(config))
    classes = len(DATASET.read(manifest)["classes"]) if manifest.exists() else CLASSES
    side = config["dataset"]["image_size"]
    smallest = min(config["grid"]["batch_sizes"]) // config["training"]["micro_batches"]
    batch = min(max(1, smallest), LEAST_BATCH)  # An error for two images occurs for more, too.
    logits: object = None
    for device in ("meta", "cpu"):
        try:
            with torch.device(device):
                logits = build(options, classes).train()(torch.zeros(batch, 3, side, side))
            break
        except UserError:
            raise
        except Exception as error:
            if device == "cpu":
                raise UserError(
                    f"model {options.model} cannot train on {fmt.plural(batch, 'image')} of {side} "
                    f"× {side} pixels ({' '.join(str(error).split())}): set dataset.image_size, or "
                    "the smallest of grid.batch_sizes, higher"
                ) from error
    shape = tuple(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
    if shape != (batch, classes):
        raise UserError(
            f"model {options.model} returns {shape} for {batch} images of {classes} classes, where "
            f"({batch}, {classes}) is needed: see model.options"
        )
