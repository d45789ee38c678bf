"""The options that every training of the study's model has."""

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """The model's size, SGD, and how images are varied."""

    model_width: int = 64
    """Channels of the model's first stage."""
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
    def shared(self) -> dict[str, Any]:
        """These options alone, for another kind of training."""
        return {key.name: getattr(self, key.name) for key in fields(TrainingOptions)}
