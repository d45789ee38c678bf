"""The optimizer's update rule and learning rate schedule. Does not import torch."""

import math
from collections.abc import Callable
from typing import Annotated, Literal

from annotated_types import Ge, Lt
from pydantic import ConfigDict

from scaling.core.section import Section

NotNegative = Annotated[float, Ge(0)]
Fraction = Annotated[float, Ge(0), Lt(1)]


class UpdateRule(Section):
    """Options of recipe `tuned` and of large-batch techniques; the default is plain SGD.

    `lars` is from You et al. 2017 (arXiv:1708.03888), the cosine from Loshchilov and Hutter 2017
    (arXiv:1608.03983), `label_smoothing` from Szegedy et al. 2016 (arXiv:1512.00567), Muon from
    Jordan et al. 2024 (https://kellerjordan.github.io/posts/muon).
    """

    model_config = ConfigDict(frozen=True)

    nesterov: bool = False
    """Nesterov's momentum, as torch.optim.SGD has it."""
    lars: NotNegative = 0.0
    """Trust coefficient of LARS, which leaves batch norms and biases to plain SGD; 0 is plain
    SGD."""
    muon: NotNegative = 0.0
    """Rate of Muon on the convolutions but the first: their momentum is made orthogonal and their
    weights keep one norm. All else has SGD at its own rate, on the same schedule. 0 is none."""
    muon_momentum: Fraction = 0.6
    """Of Muon; that of SGD stays."""
    decay_batch_norm: bool = True
    """Weight decay on batch norms and biases as well."""
    label_smoothing: Fraction = 0.0
    """Share of the labels that is spread over all classes."""
    warmup_share: Fraction = 0.0
    """Share of all updates in which the rate rises from zero to its peak, per update. With
    `decay: linear` the schedule is a triangle."""
    decay: Literal["none", "linear", "cosine"] = "none"
    """How the learning rate falls to zero after the warm-up: `none`, `linear` or `cosine`."""

    def shares(self, updates: int) -> list[float]:
        """Return the learning rate of each of `updates`, as a fraction of the peak."""
        rising = round(self.warmup_share * updates)
        left = updates - rising
        remaining: Callable[[float], float] = {
            "none": lambda progress: 1.0,
            "linear": lambda progress: 1 - progress,
            "cosine": lambda progress: (1 + math.cos(math.pi * progress)) / 2,
        }[self.decay]
        up = [(update + 1) / (rising + 1) for update in range(rising)]
        return up + [remaining(update / left) for update in range(left)]
