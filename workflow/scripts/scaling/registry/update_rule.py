"""The optimizer's update rule, and how its rate is swept for large batches. Needs no torch."""

import math
from collections.abc import Callable, Sequence
from typing import Literal, Self

from pydantic import ConfigDict, model_validator

from scaling.core.section import AboveZero, Fraction, NotNegative, Positive, Section, Some


class UpdateRule(Section):
    """Options of how a recipe updates the weights; the default is plain SGD.

    `lars` is from arXiv:1708.03888, `label_smoothing` from 1512.00567, `zero_gamma` from
    1706.02677, Muon from Jordan et al. 2024 (https://kellerjordan.github.io/posts/muon).
    """

    model_config = ConfigDict(frozen=True)

    momentum: Fraction | None = None
    """Momentum of SGD; null: the study's."""
    nesterov: bool = False
    """Nesterov's momentum, as in torch.optim.SGD."""
    lars: NotNegative = 0.0
    """Trust coefficient of LARS; batch norms and biases keep plain SGD. 0 disables it."""
    muon: NotNegative = 0.0
    """Learning rate of Muon for all convolutions but the first; the rest has SGD. 0 disables it."""
    muon_momentum: Fraction = 0.6
    """Muon's momentum; SGD keeps its own."""
    rest_rate: AboveZero | None = None
    """With `muon`, SGD's rate for all other parameters; null: the study's."""
    newton_schulz_steps: Positive = 3
    """Newton–Schulz steps that orthogonalize Muon's momentum."""
    decay_batch_norm: bool = True
    """Apply weight decay to batch norms and biases, too."""
    label_smoothing: Fraction = 0.0
    """Share of each label that is spread over all classes."""
    warmup_share: Fraction = 0.0
    """Share of all updates in which the rate rises from zero to its peak."""
    decay: Literal["none", "linear", "sqrt"] = "none"
    """How the learning rate falls to zero after the warm-up: `none`, `linear`, or `sqrt`, the
    square root of linear: high for longer."""
    zero_gamma: bool = False
    """The last batch-norm scale of each residual block of resnet18-cifar starts at 0."""

    def peaks(self, base: float) -> tuple[float, float]:
        """Return the peak rates of Muon and of SGD for the rest; without Muon, both are `base`."""
        return (self.muon, self.rest_rate or base) if self.muon else (base, base)

    def shares(self, updates: int) -> list[float]:
        """Return the learning rate at each of `updates` updates, as a fraction of the peak rate."""
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
    """What of a technique the experiment alone knows; the default is the recipe at its own rate.

    When the global batch is k times the reference batch, `scaling` multiplies the rate by k
    (linear: Goyal et al. 2017, arXiv:1706.02677, as `warmup_epochs`) or √k (sqrt: Krizhevsky 2014,
    arXiv:1404.5997).
    """

    scaling: Literal["none", "linear", "sqrt"] = "none"
    """Rule of the learning rate (with `muon`, Muon's) in the global batch."""
    warmup_epochs: NotNegative = 0.0
    """Gradual warm-up from the base rate; a recipe's `warmup_share` is one from zero."""
    factors: Some[AboveZero] | None = None
    """The technique's learning rate sweep; `[1]` is only the rule's rate."""


class Technique(SweepOptions, UpdateRule):
    """The options of one technique; the default is plain SGD at the base rate."""

    @model_validator(mode="after")
    def _one_warmup(self) -> Self:
        if self.warmup_epochs and self.warmup_share:
            raise ValueError("warmup_epochs starts at the base rate, warmup_share at 0: give one")
        return self

    def rate(self, base: float, scale: float) -> float:
        """Return the scaled rate (Muon's, if used) at `scale` times the reference batch."""
        rules = {"none": 1.0, "linear": scale, "sqrt": math.sqrt(scale)}
        return self.peaks(base)[0] * rules[self.scaling]


def gpus_of(global_batch: int, reference_batch: int, gpus: int) -> int:
    """Return `gpus` if each GPU gets at least the reference batch of a global batch, or else 1."""
    return gpus if global_batch >= gpus * reference_batch else 1


def uneven(global_batches: Sequence[int], reference_batch: int, gpus: int) -> list[int]:
    """Return the global batches that are not divisible by their number of GPUs."""
    return [batch for batch in global_batches if batch % gpus_of(batch, reference_batch, gpus)]
