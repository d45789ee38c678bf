"""The optimizer's update rule and learning rate schedule. Does not import torch."""

import math
from collections.abc import Callable
from typing import Literal

from pydantic import ConfigDict

from scaling.core.section import AboveZero, Count, Fraction, NotNegative, Positive, Section


class UpdateRule(Section):
    """Options of how a recipe updates the weights; the default is plain SGD.

    `lars` is from You et al. 2017 (arXiv:1708.03888), the cosine from Loshchilov and Hutter 2017
    (arXiv:1608.03983), `label_smoothing` from Szegedy et al. 2016 (arXiv:1512.00567), Muon from
    Jordan et al. 2024 (https://kellerjordan.github.io/posts/muon), `zero_gamma` from Goyal et al.
    2017 (arXiv:1706.02677), `ghost_batch` from Hoffer et al. 2017 (arXiv:1705.08741).
    """

    model_config = ConfigDict(frozen=True)

    momentum: Fraction | None = None
    """Momentum of SGD; null: the study's."""
    nesterov: bool = False
    """Nesterov's momentum, as in torch.optim.SGD."""
    lars: NotNegative = 0.0
    """Trust coefficient of LARS; batch norms and biases keep plain SGD. 0 disables it."""
    muon: NotNegative = 0.0
    """Learning rate of Muon for all convolutions but the first; other parameters use SGD at its
    rate, on the same schedule. 0 disables it."""
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
    decay: Literal["none", "linear", "cosine", "sqrt"] = "none"
    """How the learning rate falls to zero after the warm-up: `none`, `linear`, `cosine`, or `sqrt`,
    the square root of linear: high for longer."""
    zero_gamma: bool = False
    """The last batch-norm scale of each residual block of resnet18-cifar starts at 0."""
    ghost_batch: Count = 0
    """Batch norms normalize this many images at a time; 0: all of a GPU's batch."""

    def peaks(self, base: float) -> tuple[float, float]:
        """Return the peak rates of Muon and of the rest; without Muon both are `base`, SGD's."""
        return (self.muon, self.rest_rate or base) if self.muon else (base, base)

    def shares(self, updates: int) -> list[float]:
        """Return the learning rate of each of `updates`, as a fraction of the peak."""
        rising = round(self.warmup_share * updates)
        left = updates - rising
        remaining: Callable[[float], float] = {
            "none": lambda progress: 1.0,
            "linear": lambda progress: 1 - progress,
            "cosine": lambda progress: (1 + math.cos(math.pi * progress)) / 2,
            "sqrt": lambda progress: math.sqrt(1 - progress),
        }[self.decay]
        up = [(update + 1) / (rising + 1) for update in range(rising)]
        return up + [remaining(update / left) for update in range(left)]
