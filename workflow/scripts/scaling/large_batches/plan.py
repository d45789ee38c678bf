"""Plan the learning rates of a technique, and the factors of its sweep of rates."""

import math
from collections.abc import Mapping
from typing import Any

from scaling.core.section import Precision
from scaling.core.training_options import LargeBatches, Sgd
from scaling.registry.update_rule import Technique

NOT_FINITE, AT_CHANCE = "not finite", "at chance"
Result = dict[str, Any]
Rates = list[tuple[float, float]]
"""Learning rates (Muon's, SGD's for other parameters) of each update. Without Muon, both equal."""


class Study(LargeBatches, Sgd):
    """Options that all runs share. `learning_rate` is that of the reference batch."""

    model_width: int = 64
    """Channels of ResNet-18's first stage."""
    precision: Precision = "float32"
    """Precision of all recipes: `float32`, `tf32` or `bf16`."""


def rates(
    study: Study, technique: Technique, global_batch: int, train_images: int, factor: float
) -> Rates:
    """Return a run's learning rates: the technique's schedule, with its peak times `factor`.

    The warm-up by `warmup_epochs` is used only if this peak is above the reference batch's rate.
    """
    per_epoch, scale = math.ceil(train_images / global_batch), global_batch / study.reference_batch
    updates = per_epoch * study.epochs
    base, peak = (technique.rate(study.learning_rate, by) for by in (1.0, scale))
    peak *= factor
    warmup = min(updates, round(technique.warmup_epochs * per_epoch)) if peak > base else 0
    rising = [base + (peak - base) * update / warmup for update in range(warmup)]
    found = [*rising, *(peak * share for share in technique.shares(updates - warmup))]
    rest_peak = technique.peaks(study.learning_rate)[1]
    return [(rate, rest_peak * rate / peak if technique.muon else rate) for rate in found]


def loss(run: Result) -> float | None:
    """Return a run's last validation (else training) loss, or None if any loss is not finite."""
    if run["diverged"] == NOT_FINITE:
        return None
    return float(run["epochs"][-1]["validation_loss" if run["held_out"] else "train_loss"])


def choose(losses_by_factor: Mapping[float, float | None]) -> float:
    """Return the factor with the lowest loss; without a finite loss, the factor nearest to 1."""
    finished = [(loss, factor) for factor, loss in losses_by_factor.items() if loss is not None]
    return min(finished or [(abs(math.log(factor)), factor) for factor in losses_by_factor])[1]


def next_factor(losses_by_factor: Mapping[float, float | None]) -> float | None:
    """Return the next factor of a sweep, or None if the sweep is complete.

    If the smallest factor is best or no loss is finite, the next factor is half the smallest. If
    the largest is best, it is twice the largest. Otherwise, it is the geometric mean of the best
    factor and a tried neighbour that differs from the best by more than a factor of 2.
    """
    tried, best = sorted(losses_by_factor), choose(losses_by_factor)
    if best == tried[0] or all(loss is None for loss in losses_by_factor.values()):
        return tried[0] / 2
    if best == tried[-1]:
        return best * 2
    place = tried.index(best)
    near = tried[place - 1], tried[place + 1]
    return next((math.sqrt(best * one) for one in near if abs(math.log2(one / best)) > 1.01), None)
