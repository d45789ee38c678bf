"""Techniques for training with large batches. Needs no torch.

A technique is a set of independent options, named in the configuration (where it is a "remedy").
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from scaling.core.errors import UserError

Scaling = Literal["none", "linear", "sqrt"]
Decay = Literal["none", "linear", "cosine"]


@dataclass(frozen=True)
class Technique:
    """Describe one technique; without any option it is plain SGD at the base rate.

    `scaling`: the rule for the rate when the global batch is k times the reference batch: base · k
    (linear: Goyal et al. 2017, arXiv:1706.02677), base · √k (sqrt: Krizhevsky 2014,
    arXiv:1404.5997). `warmup_epochs`: the rate rises in equal steps from the base rate, update by
    update (gradual warm-up: Goyal et al.), unless its peak is no higher. `zero_gamma`: the last
    batch norm of each residual block starts with scale 0 (Goyal et al.). `decay_batch_norm`:
    whether batch norms and biases have weight decay. `label_smoothing`: Szegedy et al. 2016,
    arXiv:1512.00567. `lars`: the trust coefficient η of layer-wise rates (You et al. 2017,
    arXiv:1708.03888), 0 for plain SGD. `decay`: after the warm-up the rate falls to zero, linearly
    or as a cosine (Loshchilov and Hutter 2017, arXiv:1608.03983). `equal_updates`: train until
    there were as many updates as the reference batch has in the study's epochs.
    `precise_batch_norm`: before each evaluation a pass over the training images estimates the
    statistics of the batch norms anew (Wu and Johnson 2021, arXiv:2105.07576); the training is the
    same. `factors`: the sweep's multiples of the rule's rate, None for those of the study.
    """

    scaling: Scaling = "none"
    warmup_epochs: float = 0.0
    zero_gamma: bool = False
    decay_batch_norm: bool = True
    label_smoothing: float = 0.0
    lars: float = 0.0
    decay: Decay = "none"
    equal_updates: bool = False
    precise_batch_norm: bool = False
    factors: tuple[float, ...] | None = None

    def rate(self, base: float, scale: float) -> float:
        """Return the rule's rate when the global batch is `scale` times the reference batch."""
        return base * {"none": 1.0, "linear": scale, "sqrt": math.sqrt(scale)}[self.scaling]


def from_options(name: str, options: dict[str, Any]) -> Technique:
    """Make the technique `name` from its configured options; UserError for unknown ones."""
    try:
        chosen = dict(options)
        if chosen.get("factors") is not None:
            chosen["factors"] = tuple(chosen["factors"])
        return Technique(**chosen)
    except TypeError as error:
        known = ", ".join(Technique.__dataclass_fields__)
        raise UserError(f"remedy {name}: {error} (options: {known})") from error


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
