"""What a remedy for large batches is, and the learning rate that it gives each update.

A remedy is a set of independent options, named in the configuration. Needs no torch.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from scaling.core.errors import UserError

Scaling = Literal["none", "linear", "sqrt"]
Decay = Literal["none", "linear", "cosine"]


@dataclass(frozen=True)
class Remedy:
    """The options of one remedy; without any it is plain SGD at the base rate.

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
    statistics of the batch norms anew (Wu and Johnson 2021, arXiv:2105.07576); it trains as it
    would without. `factors`: the sweep's multiples of the rule's rate, None for those of the study.
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
        """The rate by the rule, when the global batch is `scale` times the reference batch."""
        return base * {"none": 1.0, "linear": scale, "sqrt": math.sqrt(scale)}[self.scaling]


def from_options(name: str, options: dict[str, Any]) -> Remedy:
    """The remedy `name` from its options in the configuration; UserError for unknown ones."""
    try:
        chosen = dict(options)
        if chosen.get("factors") is not None:
            chosen["factors"] = tuple(chosen["factors"])
        return Remedy(**chosen)
    except TypeError as error:
        known = ", ".join(Remedy.__dataclass_fields__)
        raise UserError(f"remedy {name}: {error} (options: {known})") from error


def by_name(configured: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The options of each remedy of a configuration's list, by its name."""
    return {
        entry["name"]: {key: value for key, value in entry.items() if key != "name"}
        for entry in configured
    }


def rates(
    remedy: Remedy, base: float, peak: float, updates_per_epoch: int, epochs: int
) -> list[float]:
    """The learning rate of each update, when the remedy's rate (after the warm-up) is `peak`.

    A peak that is not above the base rate has no warm-up: there is nowhere to rise to.
    """
    updates = updates_per_epoch * epochs
    warmup = min(updates, round(remedy.warmup_epochs * updates_per_epoch)) if peak > base else 0
    rising = [base + (peak - base) * update / warmup for update in range(warmup)]
    left = updates - warmup
    return rising + [peak * _left(remedy.decay, update / left) for update in range(left)]


def _left(decay: Decay, progress: float) -> float:
    """The share of the rate that is left after `progress` (0 to 1) of the updates."""
    if decay == "linear":
        return 1 - progress
    return (1 + math.cos(math.pi * progress)) / 2 if decay == "cosine" else 1.0


def updates_per_epoch(train_images: int, global_batch: int, gpus: int) -> int:
    """As DistributedSampler and DataLoader give it: the last update may be on a smaller batch."""
    return math.ceil(math.ceil(train_images / gpus) / (global_batch // gpus))


def batch_sizes(train_images: int, global_batch: int, gpus: int) -> Sequence[int]:
    """Images per GPU of each update of an epoch."""
    samples, size = math.ceil(train_images / gpus), global_batch // gpus
    full, rest = divmod(samples, size)
    return [size] * full + ([rest] if rest else [])
