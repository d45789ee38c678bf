"""The options that every training of a model has."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Which images."""

    dataset: Path
    """images.npz, made by dataset_prepare.py."""
    manifest: Path
    """Its manifest.json."""


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Which model."""

    model: str = "resnet18-cifar"
    """What is trained; `scaling.models.build` says what it may be."""
    model_width: int = 64
    """Channels of the first stage of resnet18-cifar."""
    model_options: dict[str, Any] = field(default_factory=dict)
    """Arguments of another model's function."""


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(ModelOptions):
    """The model, SGD, and how images are varied."""

    learning_rate: float = 0.1
    """Of SGD."""
    momentum: float = 0.9
    """Of SGD."""
    weight_decay: float = 5e-4
    """Of SGD."""
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
        """These options alone, for another kind of training."""
        return {key.name: getattr(self, key.name) for key in fields(TrainingOptions)}
