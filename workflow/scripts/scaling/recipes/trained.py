"""What a recipe takes to report progress and what it returns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from scaling.record import EpochRow

Report = Callable[[EpochRow], None]


@dataclass(frozen=True)
class Trained:
    """A trained model, the gradient buckets it was sent in, and the options really applied."""

    model: nn.Module
    bucket_bytes: list[int]
    applied: dict[str, Any]
