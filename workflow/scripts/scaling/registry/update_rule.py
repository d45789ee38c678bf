"""The optimizer's update rule, and the sweep of its learning rate. This module needs no PyTorch."""

import math
from collections.abc import Callable, Sequence
from typing import Literal, Self

from pydantic import ConfigDict, model_validator

from scaling.core.section import AboveZero, Fraction, NotNegative, Positive, Section, Some


class UpdateRule(Section):
    """Options of the weight update in a recipe; the default is plain SGD.

    Sources: `lars` arXiv:1708.03888, `label_smoothing` arXiv:1512.00567, `zero_gamma`
    arXiv:1706.02677, Muon Jordan et al. 2024 (https://kellerjordan.github.io/posts/muon).
    """

    model_config = ConfigDict(frozen=True)

    momentum: Fraction | None = None
    """Momentum of SGD; null: the momentum in section `training`."""
    nesterov: bool = False
    """Uses Nesterov momentum, as in torch.optim.SGD."""
    lars: NotNegative = 0.0
    """Trust coefficient of LARS; batch norms and biases use plain SGD. 0: no LARS."""
    muon: NotNegative = 0.0
    """Learning rate of Muon for all convolutions but the first; the rest uses SGD. 0: no Muon."""
    muon_momentum: Fraction = 0.6
    """Momentum of Muon; SGD uses `momentum`."""
    rest_rate: AboveZero | None = None
    """Learning rate of SGD for parameters without Muon; null: the base learning rate."""
    newton_schulz_steps: Positive = 3
    """Newton–Schulz steps that orthogonalize the momentum of Muon."""
    decay_batch_norm: bool = True
    """Applies weight decay also to batch norms and biases."""
    label_smoothing: Fraction = 0.0
    """Fraction of each label that is spread over all classes."""
    warmup_share: Fraction = 0.0
    """Fraction of all updates during which the learning rate rises from zero to its peak."""
    decay: Literal["none", "linear", "sqrt"] = "none"
    """How the learning rate falls to zero after the warm-up: `none` (constant), `linear`, or
    `sqrt` (the square root of `linear`, which stays high for longer)."""
    zero_gamma: bool = False
    """Initializes the last batch-norm scale of each residual block of resnet18-cifar with 0."""

    def peaks(self, base: float) -> tuple[float, float]:
        """Return the peak learning rates of Muon and of SGD. Without Muon, both are `base`."""
        return (self.muon, self.rest_rate or base) if self.muon else (base, base)

    def shares(self, updates: int) -> list[float]:
        """Return the learning rate of each of `updates` updates, as a fraction of the peak rate."""
        rising = round(self.warmup_share * updates)
        left = updates - rising
        remaining: Callable[[float], float] = {
            "none": lambda progress: 1.0,
            "linear": lambda progress: 1 - progress,
            "sqrt": lambda progress: math.sqrt(1 - progress),
        }[self.decay]
        up = [(update + 1) / (rising + 1) for update in range(rising)]
        return up + [remaining(update / left) for update in range(left)]


class SweepOptions(Section):
    """Options of techniques only, not of recipes: scaling and sweep of the learning rate.

    If the global batch is k times the reference batch, `scaling` multiplies the learning rate by k
    (`linear`) or √k (`sqrt`). Sources: `linear` and `warmup_epochs` Goyal et al. 2017,
    arXiv:1706.02677; `sqrt` Krizhevsky 2014, arXiv:1404.5997.
    """

    scaling: Literal["none", "linear", "sqrt"] = "none"
    """How the learning rate (of Muon, if used) grows with the global batch."""
    warmup_epochs: NotNegative = 0.0
    """Epochs of a warm-up from the base learning rate. (`warmup_share` is a warm-up from zero.)"""
    factors: Some[AboveZero] | None = None
    """Factors of the learning rate sweep. `[1]`: no sweep. Null: as in `convergence.factors`."""


class Technique(SweepOptions, UpdateRule):
    """Options of one technique for large batches. The default is plain SGD at the base rate."""

    @model_validator(mode="after")
    def _one_warmup(self) -> Self:
        if self.warmup_epochs and self.warmup_share:
            raise ValueError("warmup_epochs starts at the base rate, warmup_share at 0: give one")
        return self

    def rate(self, base: float, scale: float) -> float:
        """Return `base`, or Muon's rate, scaled for a global batch of `scale` reference batches."""
        rules = {"none": 1.0, "linear": scale, "sqrt": math.sqrt(scale)}
        return self.peaks(base)[0] * rules[self.scaling]


def gpus_of(global_batch: int, reference_batch: int, gpus: int) -> int:
    """Return `gpus` if each GPU's part of the batch is at least `reference_batch`, else 1."""
    return gpus if global_batch >= gpus * reference_batch else 1


def uneven(global_batches: Sequence[int], reference_batch: int, gpus: int) -> list[int]:
    """Return the global batches that cannot be split evenly over 1 or `gpus` GPUs (`gpus_of`)."""
    return [batch for batch in global_batches if batch % gpus_of(batch, reference_batch, gpus)]
