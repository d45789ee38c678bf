"""The options that all trainings of a model share."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Options that select the images."""

    dataset: Path
    """images.npz, made by dataset_prepare.py."""
    manifest: Path
    """Its manifest.json, with the dataset's description."""


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Options that select the model."""

    model: str = "resnet18-cifar"
    """Name of the model; `scaling.models.build` lists the forms."""
    model_width: int = 64
    """Channels of the first stage, for resnet18-cifar."""
    model_options: dict[str, Any] = field(default_factory=dict)
    """Arguments of the function that makes another model."""


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(ModelOptions):
    """Options of the model, SGD and data augmentation."""

    learning_rate: float = 0.1
    """Learning rate of SGD."""
    momentum: float = 0.9
    """Momentum of SGD."""
    weight_decay: float = 5e-4
    """Weight decay of SGD."""
    crop_padding: int = 4
    """Pixels of padding around an image before a random crop."""
    horizontal_flip: bool = True
    """Whether half of the images are mirrored."""

    @property
    def sgd(self) -> dict[str, Any]:
        return {
            "lr": self.learning_rate,
            "momentum": self.momentum,
            "weight_decay": self.weight_decay,
        }

    @property
    def shared(self) -> dict[str, Any]:
        """Return only these options, to pass to another kind of training."""
        return {key.name: getattr(self, key.name) for key in fields(TrainingOptions)}
