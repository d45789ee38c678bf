"""Techniques for training with large batches: a recipe's update, and how its rate is swept.

Needs no torch.
"""

import math
from collections.abc import Sequence
from typing import Literal, Self

from pydantic import model_validator

from scaling.core.section import AboveZero, NotNegative, Positive, Section, Some
from scaling.registry.update_rule import UpdateRule


class Trials(Section):
    """What of a technique the experiment alone knows; the default is the recipe at its own rate.

    When the global batch is k times the reference batch, `scaling` multiplies the rate by k
    (linear: Goyal et al. 2017, arXiv:1706.02677) or √k (sqrt: Krizhevsky 2014, arXiv:1404.5997).
    `warmup_epochs` is from Goyal et al. too, `scaled_momentum` from Smith et al. 2018
    (arXiv:1711.00489), and `precise_batch_norm`, which only changes evaluation, from Wu and
    Johnson 2021 (arXiv:2105.07576).
    """

    scaling: Literal["none", "linear", "sqrt"] = "none"
    """Rule of the learning rate (with `muon`, Muon's) in the global batch: `none`, `linear` or
    `sqrt`."""
    warmup_epochs: NotNegative = 0.0
    """Gradual warm-up from the base rate; a recipe's `warmup_share` is one from zero."""
    scaled_momentum: bool = False
    """1 − momentum is divided by the ratio of the global batch to the reference batch."""
    equal_updates: bool = False
    """As many updates as at the reference batch, instead of as many epochs."""
    precise_batch_norm: bool = False
    """`convergence.precise_batch_norm` for this technique alone."""
    lengths: Some[Positive] | None = None
    """Other numbers of epochs to train at the chosen rate, to find the images that an accuracy
    needs."""
    factors: Some[AboveZero] | None = None
    """The technique's learning rate sweep; `[1]` is only the rule's rate."""


class Technique(Trials, UpdateRule):
    """The options of one technique; the default is plain SGD at the base rate."""

    @model_validator(mode="after")
    def _one_warmup(self) -> Self:
        if self.warmup_epochs and self.warmup_share:
            raise ValueError("warmup_epochs starts at the base rate, warmup_share at 0: give one")
        return self

    def rate(self, base: float, scale: float) -> float:
        """Return the rule's rate (Muon's, if used) at `scale` times the reference batch."""
        rules = {"none": 1.0, "linear": scale, "sqrt": math.sqrt(scale)}
        return self.peaks(base)[0] * rules[self.scaling]

    def momentum_of(self, base: float, scale: float) -> float:
        """Return the momentum when the global batch is `scale` times the reference batch."""
        momentum = base if self.momentum is None else self.momentum
        return 1 - (1 - momentum) / scale if self.scaled_momentum else momentum


def gpus_of(global_batch: int, reference_batch: int, gpus: int) -> int:
    """Return how many of `gpus` GPUs share a global batch.

    It is all of them if each gets at least the reference batch, else one.
    """
    return gpus if global_batch >= gpus * reference_batch else 1


def uneven(global_batches: Sequence[int], reference_batch: int, gpus: int) -> list[int]:
    """Return the global batches that are not divisible by their number of GPUs."""
    return [batch for batch in global_batches if batch % gpus_of(batch, reference_batch, gpus)]
