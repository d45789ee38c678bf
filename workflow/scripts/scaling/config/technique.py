"""Techniques for training with large batches. Needs no torch.

A technique is a set of independent options, named in the configuration (where it is a "remedy").
"""

import math
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import ConfigDict

from scaling.config.key_types import AboveZero, Fraction, NotNegative, Some
from scaling.core.section import Section


class Technique(Section):
    """The options of one technique; without any it is plain SGD at the base rate.

    When the global batch is k times the reference batch, `scaling` takes the rate to base · k
    (linear: Goyal et al. 2017, arXiv:1706.02677) or base · √k (sqrt: Krizhevsky 2014,
    arXiv:1404.5997). `warmup_epochs` and `zero_gamma` are of Goyal et al. too, `label_smoothing` of
    Szegedy et al. 2016 (arXiv:1512.00567), `lars` of You et al. 2017 (arXiv:1708.03888), the cosine
    of Loshchilov and Hutter 2017 (arXiv:1608.03983), and `precise_batch_norm`, which leaves the
    training the same, of Wu and Johnson 2021 (arXiv:2105.07576).
    """

    model_config = ConfigDict(frozen=True)

    scaling: Literal["none", "linear", "sqrt"] = "none"
    """Rule of the learning rate in the global batch: `none`, `linear` or `sqrt`."""
    warmup_epochs: NotNegative = 0.0
    """Gradual warm-up from the base rate, per update; none where the peak is no higher."""
    zero_gamma: bool = False
    """The last batch-norm scale of each residual block starts at 0."""
    decay_batch_norm: bool = True
    """Weight decay on batch norms and biases as well."""
    label_smoothing: Fraction = 0.0
    """Share of the labels that is spread over all classes."""
    lars: NotNegative = 0.0
    """Trust coefficient of LARS, which leaves batch norms and biases to plain SGD; 0 is plain
    SGD."""
    decay: Literal["none", "linear", "cosine"] = "none"
    """How the learning rate falls to zero after the warm-up: `none`, `linear` or `cosine`."""
    equal_updates: bool = False
    """As many updates as the reference batch has, instead of as many epochs."""
    precise_batch_norm: bool = False
    """A pass over the training images before each evaluation, for the statistics of the batch
    norms."""
    factors: Some[AboveZero] | None = None
    """A sweep of its own; `[1]` takes the rule at its word, which is judged against the base
    rate."""

    def rate(self, base: float, scale: float) -> float:
        """Return the rule's rate when the global batch is `scale` times the reference batch."""
        return base * {"none": 1.0, "linear": scale, "sqrt": math.sqrt(scale)}[self.scaling]


def by_name(configured: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Map the name of each entry of the configuration's list to its options."""
    return {
        entry["name"]: {key: value for key, value in entry.items() if key != "name"}
        for entry in configured
    }


def gpus_of(global_batch: int, reference_batch: int, gpus: int) -> int:
    """Return over how many of `gpus` GPUs a global batch is spread.

    It is spread when each GPU gets at least the reference batch, and on one GPU otherwise.
    """
    return gpus if global_batch >= gpus * reference_batch else 1


def uneven(global_batches: Sequence[int], reference_batch: int, gpus: int) -> list[int]:
    """Return the global batches that do not divide by the number of GPUs they are spread over."""
    return [batch for batch in global_batches if batch % gpus_of(batch, reference_batch, gpus)]
