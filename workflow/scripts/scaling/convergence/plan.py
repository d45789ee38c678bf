"""Plan a technique's runs at a global batch: a learning rate sweep, then the best rate's seeds.

The rate is chosen on images held out of the training set, or by training loss without them, never
on the test set.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from scaling.core.section import Precision
from scaling.core.training_options import LargeBatches, Sgd
from scaling.registry.update_rule import Technique, UpdateRule, gpus_of


class Study(LargeBatches, Sgd):
    """Options shared by all runs; the learning rate is for the reference batch."""

    model_width: int = 64
    """Channels of ResNet-18's first stage."""
    precision: Precision = "float32"
    """Of the recipes: `float32`, `tf32` or `bf16`."""

    def gpus_of(self, global_batch: int) -> int:
        """Return the number of GPUs that share a global batch."""
        return gpus_of(global_batch, self.reference_batch, self.gpus)

    def batch_sizes(self, train_images: int, global_batch: int) -> list[int]:
        """Return the images per GPU of each update of an epoch, as DistributedSampler has them."""
        gpus = self.gpus_of(global_batch)
        full, rest = divmod(math.ceil(train_images / gpus), global_batch // gpus)
        return [global_batch // gpus] * full + ([rest] if rest else [])


@dataclass(frozen=True)
class Run:
    """All that decides the result of one run at a global batch; equal runs give equal results.

    `rates` has one learning rate per update (Muon's, if used), and `rest` those of parameters that
    Muon leaves to SGD; `rule` omits what these and `momentum` contain. A `held_out` run trains
    without the images that it is evaluated on; `precise` is by statistics of training images.
    """

    seed: int
    epochs: int
    rates: tuple[float, ...]
    rest: tuple[float, ...]
    momentum: float
    rule: UpdateRule
    held_out: bool = False
    precise: bool = False


OF_THE_RATES = ("warmup_share", "decay", "momentum", "rest_rate")
"""Options of an update rule that a run's other fields contain."""


def run_of(
    study: Study,
    technique: Technique,
    global_batch: int,
    train_images: int,
    factor: float,
    seed: int,
    held_out: bool = False,
) -> Run:
    """Return the run of `technique` at `factor` times its rule's rate, on `train_images`.

    With `equal_updates` it has as many epochs as give the reference batch's number of updates.
    """
    updates, epochs = len(study.batch_sizes(train_images, global_batch)), study.epochs
    if technique.equal_updates:
        wanted = epochs * len(study.batch_sizes(train_images, study.reference_batch))
        epochs = max(epochs, min(math.ceil(wanted / updates), study.max_epochs))
    base, scale = study.learning_rate, global_batch / study.reference_batch
    peak = factor * technique.rate(base, scale)
    found = tuple(rates(technique, technique.rate(base, 1.0), peak, updates, epochs))
    rest_peak = technique.peaks(base)[1]
    rest = tuple(rest_peak * rate / peak for rate in found) if technique.muon else found
    kept = technique.model_dump(include=UpdateRule.model_fields.keys() - OF_THE_RATES)
    rule = UpdateRule(**kept | {"muon": float(technique.muon > 0)})
    momentum = technique.momentum_of(study.momentum, scale)
    precise = technique.precise_batch_norm or study.precise_batch_norm
    return Run(seed, epochs, found, rest, momentum, rule, held_out, precise)


def rates(
    technique: Technique, base: float, peak: float, updates_per_epoch: int, epochs: int
) -> list[float]:
    """Return the learning rate of each update; after the warm-up the schedule starts at `peak`.

    There is no warm-up if the peak is at most the base rate.
    """
    updates = updates_per_epoch * epochs
    warmup = min(updates, round(technique.warmup_epochs * updates_per_epoch)) if peak > base else 0
    rising = [base + (peak - base) * update / warmup for update in range(warmup)]
    return rising + [peak * share for share in technique.shares(updates - warmup)]


def choose(found: Mapping[float, float | None]) -> float:
    """Return the factor of the lowest loss; that nearest to 1 if none is finite (all are None)."""
    finished = [(loss, factor) for factor, loss in found.items() if loss is not None]
    return min(finished or [(abs(math.log(factor)), factor) for factor in found])[1]


def next_factor(found: Mapping[float, float | None]) -> float | None:
    """Return the next factor of a sweep; None once the best one lies inside, to a factor of 2.

    If the best is an end, the next is twice as far out; else it is halfway (geometrically) to a
    neighbour more than a factor of 2 away.
    """
    tried, best = sorted(found), choose(found)
    if best == tried[0] or all(loss is None for loss in found.values()):
        return tried[0] / 2
    if best == tried[-1]:
        return best * 2
    place = tried.index(best)
    near = tried[place - 1], tried[place + 1]
    return next((math.sqrt(best * one) for one in near if abs(math.log2(one / best)) > 1.01), None)
